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
 * Functions for SQL that give what Debezium writes as JSON, decimals with all their digits.
 *
 * <p>Spark's own reader of Avro uses no registry: it would need each schema in advance.
 */
final class Debezium implements Serializable {
  private static final long serialVersionUID = 1;
  private static final ObjectMapper JSON =
      JsonMapper.builder().enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN).build();

  /** One of each registry for each JVM, however often Spark copies the functions. */
  private static final Map<String, DebeziumReader> READERS = new ConcurrentHashMap<>();

  private final String registry;

  /** `registry` is the URL of Confluent's API. */
  Debezium(String registry) {
    this.registry = registry;
  }

  /** The key of a table: its only column. */
  String key(byte[] message) throws IOException {
    return JSON.writeValueAsString(reader().key(message));
  }

  /** The row as it is after a change, its columns in their order; null if it is gone. */
  String row(byte[] message) throws IOException {
    return json(reader().after(message));
  }

  /** The row as it was before a change; null if there was none. */
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
