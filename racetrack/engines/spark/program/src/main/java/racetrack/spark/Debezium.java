package racetrack.spark;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import racetrack.upsert.DebeziumReader;

/**
 * SQL functions that convert Debezium's messages to JSON, with all digits of decimals.
 *
 * <p>Spark's own Avro functions use no registry, so they would need each schema in advance.
 */
final class Debezium implements Serializable {
  private static final long serialVersionUID = 1;
  private static final ObjectMapper JSON =
      JsonMapper.builder().enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN).build();

  /** One reader for each registry in a JVM, however often Spark copies the functions. */
  private static final Map<String, DebeziumReader> READERS = new ConcurrentHashMap<>();

  private final String registry;

  /** `registry` is the URL of Confluent's API. */
  Debezium(String registry) {
    this.registry = registry;
  }

  /** Returns the key of a row: the value of the table's only key column. */
  String key(byte[] message) throws IOException {
    return JSON.writeValueAsString(reader().key(message));
  }

  /** Returns the row after a change, with its columns in order; null if it was deleted. */
  String row(byte[] message) throws IOException {
    return json(reader().after(message));
  }

  /** Returns the row before a change; null if there was none. */
  String rowBefore(byte[] message) throws IOException {
    return json(reader().before(message));
  }

  private DebeziumReader reader() {
    return READERS.computeIfAbsent(registry, DebeziumReader::new);
  }

  private static String json(Map<String, Object> row) throws IOException {
    return row == null ? null : JSON.writeValueAsString(row);
  }
}
