package racetrack.kstreams;

import java.io.IOException;
import java.util.function.Function;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import racetrack.upsert.DebeziumReader;

/** Reads Debezium's messages for Kafka Streams. */
final class Debezium {
  private final DebeziumReader reader;

  /** `registry` is the URL of Confluent's API. */
  Debezium(String registry) {
    reader = new DebeziumReader(registry);
  }

  /** The key of a table: its only column. */
  <K> Serde<K> key(Function<Object, K> as) {
    return readOnly(message -> as.apply(reader.key(message)));
  }

  /** The row as it is after a change; null if it is gone. */
  <V> Serde<V> row(Class<V> type) {
    return readOnly(
        message -> {
          var after = message == null ? null : reader.after(message);
          return after == null ? null : Json.MAPPER.convertValue(after, type);
        });
  }

  private static <T> Serde<T> readOnly(Read<T> read) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          throw new UnsupportedOperationException(topic + " is Debezium's");
        },
        (topic, message) -> {
          try {
            return read.from(message);
          } catch (IOException error) {
            throw new SerializationException("a message of " + topic + " can't be read", error);
          }
        });
  }

  private interface Read<T> {
    T from(byte[] message) throws IOException;
  }
}
