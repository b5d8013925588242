package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * Binary formats for data that is written for each event: JSON would take more CPU time than all
 * other processing.
 */
final class Compact {
  private Compact() {}

  static <T> Serde<T> of(int bytes, BiConsumer<ByteBuffer, T> write, Function<ByteBuffer, T> read) {
    return ofSize(value -> bytes, write, read);
  }

  static <T> Serde<T> ofSize(
      ToIntFunction<T> bytes, BiConsumer<ByteBuffer, T> write, Function<ByteBuffer, T> read) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          if (value == null) {
            return null;
          }
          ByteBuffer buffer = ByteBuffer.allocate(bytes.applyAsInt(value));
          write.accept(buffer, value);
          return buffer.array();
        },
        (topic, data) -> data == null ? null : read.apply(ByteBuffer.wrap(data)));
  }

  /**
   * Writes all keys as the same byte, and reads them as `key`. A table with this serde has a single
   * row in each task.
   */
  static <K> Serde<K> unkeyed(K key) {
    return Serdes.serdeFrom((topic, any) -> new byte[1], (topic, data) -> key);
  }

  /**
   * A key of two non-negative numbers. Stores sort such keys by the first number, then by the
   * second.
   */
  record Pair(long first, long second) {
    static final Serde<Pair> SERDE =
        of(
            2 * Long.BYTES,
            (buffer, pair) -> buffer.putLong(pair.first).putLong(pair.second),
            buffer -> new Pair(buffer.getLong(), buffer.getLong()));
  }
}
