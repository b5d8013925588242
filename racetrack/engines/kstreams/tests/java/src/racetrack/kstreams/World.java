package racetrack.kstreams;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.TopologyTestDriver;
import racetrack.upsert.Cluster;

/** A topology without Kafka: what comes in, a registry for it, and what the views then hold. */
final class World implements AutoCloseable {
  static final long NOW_MS = 1_795_000_000_000L;
  /** Reads decimals digit by digit, zeros at the end too. */
  private static final ObjectReader EXACT =
      Json.MAPPER
          .reader()
          .with(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .without(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES);

  private final HttpServer registry;
  private final List<Schema> schemas = new ArrayList<>();
  private final TopologyTestDriver driver;
  /** Topic → key → row. */
  private final Map<String, Map<String, JsonNode>> views = new HashMap<>();

  /** As it is delivered, or as far from that as its settings go. */
  enum Kind {
    DELIVERED("at_least_once", 10 << 20, false, true),
    OTHERWISE("exactly_once_v2", 0, true, false);

    private final String guarantee;
    private final int cacheBytes;
    private final boolean inMemory;
    private final boolean changelog;

    Kind(String guarantee, int cacheBytes, boolean inMemory, boolean changelog) {
      this.guarantee = guarantee;
      this.cacheBytes = cacheBytes;
      this.inMemory = inMemory;
      this.changelog = changelog;
    }
  }

  World(BiFunction<Settings, Integer, TopologyContext> topology, Kind kind) throws IOException {
    this(topology, kind, 1, 0);
  }

  /** With these queries; events come from the first partition only, however many there are. */
  World(
      BiFunction<Settings, Integer, TopologyContext> topology,
      Kind kind,
      int partitions,
      long watermarkDelayMs,
      String... queries)
      throws IOException {
    registry = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    registry.createContext("/schemas/ids/", this::answer);
    registry.start();
    Path state = Files.createTempDirectory("kstreams-state");
    String url = "http://localhost:" + registry.getAddress().getPort();
    Settings settings =
        new Settings(
            Cluster.at("nowhere:1"), url, "test", List.of(queries), watermarkDelayMs, 100,
            kind.guarantee, 1, kind.cacheBytes, 5,
            kind.inMemory, kind.changelog, true, Map.of(), "only", state, state.resolve("ready"));
    driver =
        new TopologyTestDriver(
            topology.apply(settings, partitions).build(),
            settings.forStreams("test"),
            Instant.ofEpochMilli(NOW_MS));
  }

  /** A message as it is; null: a tombstone. */
  void send(String topic, String text) {
    driver
        .createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer())
        .pipeInput(
            null,
            text == null ? null : text.getBytes(StandardCharsets.UTF_8),
            Instant.ofEpochMilli(NOW_MS));
  }

  /** A change of a table, as Debezium tells it: the row by its columns; null: it is gone. */
  void change(String topic, Object key, Schema row, Map<String, Object> after) {
    driver
        .createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer())
        .pipeInput(framed(Rows.key(row), Map.of(row.getFields().get(0).name(), key)),
            framed(Rows.envelope(row), envelope(row, after)),
            Instant.ofEpochMilli(NOW_MS));
  }

  void pass(Duration time) {
    driver.advanceWallClockTime(time);
  }

  /** The rows of a view, in no order. */
  List<JsonNode> rows(String view) {
    return new ArrayList<>(table("kstreams." + view).values());
  }

  /** The rows without keys that were added to a view since the last call. */
  List<JsonNode> added(String view) {
    return driver
        .createOutputTopic("kstreams." + view, new StringDeserializer(), new StringDeserializer())
        .readKeyValuesToList()
        .stream()
        .map(
            each -> {
              if (each.key != null) {
                throw new AssertionError(view + " has a key: " + each);
              }
              return parsed(each.value);
            })
        .toList();
  }

  /** Its only row. */
  JsonNode row(String view) {
    List<JsonNode> rows = rows(view);
    if (rows.size() != 1) {
      throw new AssertionError(view + " has " + rows.size() + " rows: " + rows);
    }
    return rows.get(0);
  }

  /** The rows of a view in which a column is this number. */
  List<JsonNode> rows(String view, String column, long value) {
    return rows(view).stream().filter(row -> row.get(column).asLong() == value).toList();
  }

  /** The names of the topics between the stages that were written to. */
  Set<String> innerTopics() {
    String begin = "test-";
    String end = "-repartition";
    return driver.producedTopicNames().stream()
        .filter(topic -> topic.startsWith(begin) && topic.endsWith(end))
        .map(topic -> topic.substring(begin.length(), topic.length() - end.length()))
        .collect(Collectors.toSet());
  }

  private Map<String, JsonNode> table(String topic) {
    Map<String, JsonNode> table = views.computeIfAbsent(topic, key -> new HashMap<>());
    var output =
        driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer());
    output
        .readKeyValuesToList()
        .forEach(
            each -> {
              if (each.value == null) {
                table.remove(each.key);
              } else {
                table.put(each.key, parsed(each.value));
              }
            });
    return table;
  }

  private static JsonNode parsed(String text) {
    try {
      return EXACT.readTree(text);
    } catch (IOException error) {
      throw new AssertionError(text, error);
    }
  }

  private static Map<String, Object> envelope(Schema row, Map<String, Object> after) {
    Map<String, Object> found = new HashMap<>();
    found.put("before", null);
    found.put("after", after == null ? null : record(row, after));
    return found;
  }

  private static GenericRecord record(Schema schema, Map<String, Object> columns) {
    GenericRecord record = new GenericData.Record(schema);
    for (Entry<String, Object> column : columns.entrySet()) {
      record.put(column.getKey(), column.getValue());
    }
    return record;
  }

  private byte[] framed(Schema schema, Map<String, Object> columns) {
    if (!schemas.contains(schema)) {
      schemas.add(schema);
    }
    GenericData data = new GenericData();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes(ByteBuffer.allocate(5).put((byte) 0).putInt(schemas.indexOf(schema)).array());
    try {
      var encoder = EncoderFactory.get().binaryEncoder(out, null);
      new GenericDatumWriter<GenericRecord>(schema, data).write(record(schema, columns), encoder);
      encoder.flush();
    } catch (IOException error) {
      throw new AssertionError(error);
    }
    return out.toByteArray();
  }

  private void answer(HttpExchange exchange) throws IOException {
    String path = exchange.getRequestURI().getPath();
    int id = Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
    byte[] body = Json.MAPPER.writeValueAsBytes(Map.of("schema", schemas.get(id).toString()));
    exchange.sendResponseHeaders(200, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  @Override
  public void close() {
    driver.close();
    registry.stop(0);
  }
}
