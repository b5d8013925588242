package racetrack.upsert;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.avro.generic.GenericRecord;

/** An engine without Kafka: what comes in, a registry for it, and what the views then hold. */
public abstract class Stage implements AutoCloseable {
  public static final long NOW_MS = 1_795_000_000_000L;

  /** Reads decimals digit by digit, zeros at the end too. */
  private static final ObjectReader EXACT =
      new ObjectMapper()
          .reader()
          .with(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .without(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES);

  protected final Registry registry = new Registry();

  /** A message; null: a tombstone. The partition counts only where the engine has several here. */
  protected abstract void send(String topic, int partition, byte[] key, byte[] value);

  /** The rows of a view, in no order, when all that was sent is in it. */
  public abstract List<JsonNode> rows(String view);

  /** A change of a table; null: there was no row, or is none. */
  public void change(String table, GenericRecord before, GenericRecord after) {
    byte[] key = registry.key(after == null ? before : after);
    send("mysql." + table, 0, key, registry.change(before, after));
  }

  public void send(String topic, int partition, String text) {
    send(topic, partition, null, text == null ? null : text.getBytes());
  }

  public void send(String topic, String text) {
    send(topic, 0, text);
  }

  public void pageview(int partition, long user, String url, long afterMs) {
    String text =
        "{\"user_id\": %d, \"url\": \"%s\", \"channel\": \"social\", \"received_at\": %d}";
    send("pageviews", partition, text.formatted(user, url, NOW_MS + afterMs));
  }

  public void event(int partition, String ad, String type, long afterMs) {
    String text =
        "{\"user_id\": \"u\", \"ad_id\": \"%s\", \"event_type\": \"%s\", \"event_time\": %d}";
    send("ad-events", partition, text.formatted(ad, type, NOW_MS + afterMs));
  }

  /** Its only row. */
  public JsonNode row(String view) {
    return only(view, rows(view));
  }

  /** Its only row in which a column is this number. */
  public JsonNode row(String view, String column, long value) {
    return only(view, rows(view, column, value));
  }

  public List<JsonNode> rows(String view, String column, long value) {
    return rows(view).stream().filter(row -> row.get(column).asLong() == value).toList();
  }

  public Set<Long> values(String view, String column) {
    return rows(view).stream().map(row -> row.get(column).asLong()).collect(Collectors.toSet());
  }

  public static List<Long> numbers(JsonNode row, String... columns) {
    return List.of(columns).stream().map(column -> row.get(column).asLong()).toList();
  }

  public static String decimal(JsonNode row, String column) {
    return row.get(column).decimalValue().toPlainString();
  }

  protected static JsonNode parsed(String text) {
    try {
      return EXACT.readTree(text);
    } catch (JsonProcessingException error) {
      throw new AssertionError(text, error);
    }
  }

  private static JsonNode only(String view, List<JsonNode> rows) {
    if (rows.size() != 1) {
      throw new AssertionError(view + " has " + rows.size() + " rows: " + rows);
    }
    return rows.get(0);
  }

  @Override
  public void close() throws Exception {
    registry.close();
  }
}
