package racetrack.kstreams;

import java.io.IOException;
import java.util.function.Function;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import racetrack.upsert.DebeziumReader;

/** Serdes with which Kafka Streams reads Debezium's messages. */
final class Debezium {
  private final DebeziumReader reader;

  /** `registry` is the URL of Confluent's API. */
  Debezium(String registry) {
    reader = new DebeziumReader(registry);
  }

  /** Serde of a table's key, which has only one column. */
  <K> Serde<K> key(Function<Object, K> as) {
    return readOnly(message -> as.apply(reader.key(message)));
  }

  /** Serde of the row after a change; the row is null if it was deleted. */
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
