package racetrack.kstreams;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * Binary formats for data that is written for each event, and for the rows of items, which change
 * with events: JSON would take more CPU time than all other processing.
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

  interface Write<T> {
    void to(DataOutputStream out, T value) throws IOException;
  }

  interface Read<T> {
    T from(DataInputStream in) throws IOException;
  }

  /** Serde for rows with texts and decimals, whose sizes differ. */
  static <T> Serde<T> ofRow(Write<T> write, Read<T> read) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          if (value == null) {
            return null;
          }
          ByteArrayOutputStream bytes = new ByteArrayOutputStream();
          try {
            write.to(new DataOutputStream(bytes), value);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
          return bytes.toByteArray();
        },
        (topic, data) -> {
          try {
            return data == null
                ? null
                : read.from(new DataInputStream(new ByteArrayInputStream(data)));
          } catch (IOException error) {
            throw new SerializationException("a row of " + topic + " can't be read", error);
          }
        });
  }

  /** Writes a text, which may be null. */
  static void write(DataOutputStream out, String text) throws IOException {
    writeBytes(out, text == null ? null : text.getBytes(StandardCharsets.UTF_8));
  }

  static String readText(DataInputStream in) throws IOException {
    byte[] text = readBytes(in);
    return text == null ? null : new String(text, StandardCharsets.UTF_8);
  }

  static void write(DataOutputStream out, BigDecimal number) throws IOException {
    writeBytes(out, number.unscaledValue().toByteArray());
    out.writeInt(number.scale());
  }

  static BigDecimal readDecimal(DataInputStream in) throws IOException {
    return new BigDecimal(new BigInteger(readBytes(in)), in.readInt());
  }

  private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? -1 : bytes.length);
    out.write(bytes == null ? new byte[0] : bytes);
  }

  private static byte[] readBytes(DataInputStream in) throws IOException {
    int length = in.readInt();
    return length < 0 ? null : in.readNBytes(length);
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
