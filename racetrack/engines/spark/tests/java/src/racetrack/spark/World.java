package racetrack.spark;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;
import racetrack.upsert.Cluster;

/** Queries without Kafka: what comes in, a registry for it, and what the views then hold. */
final class World implements AutoCloseable {
  static final long NOW_MS = 1_795_000_000_000L;
  static final Map<String, String> PROPERTIES = Map.of("spark.sql.streaming.pollingDelay", "10");
  /** What Kafka's source says of a message. */
  private static final StructType MESSAGE =
      StructType.fromDDL("topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY");
  /** Reads decimals digit by digit, zeros at the end too. */
  private static final ObjectMapper EXACT =
      new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

  final SparkSession spark;
  final Kafka kafka;
  private final Registry registry = new Registry();
  private final Map<String, MemoryStream<Row>> topics = new TreeMap<>();
  private final List<StreamingQuery> queries = new ArrayList<>();
  /** Topic → key → row, as the queries write them. */
  private final Map<String, Map<String, String>> written = new TreeMap<>();
  private long offset;

  World() throws IOException {
    Path state = Files.createTempDirectory("spark-state");
    Settings settings =
        new Settings(
            Cluster.at("nowhere:1"), registry.url(), "test", List.of(), 0, 1, 2, true, PROPERTIES,
            state, state);
    spark = Session.open(settings);
    kafka = new Kafka(spark, settings);
  }

  /** A topic that queries know by this name. */
  void topic(String name) {
    MemoryStream<Row> topic = MemoryStream.apply(Encoders.row(MESSAGE), spark);
    topics.put(name, topic);
    topic.toDF().createOrReplaceTempView(name);
  }

  /** A message as it is; null: a tombstone. */
  void send(String topic, int partition, String text) {
    send(topic, partition, null, text == null ? null : text.getBytes(StandardCharsets.UTF_8));
  }

  /** A change of a table; null: there was no row, or is none. */
  void change(String topic, Schema schema, GenericRecord before, GenericRecord after)
      throws IOException {
    byte[] key = registry.key(after == null ? before : after);
    send(topic, 0, key, registry.change(schema, before, after));
  }

  private void send(String topic, int partition, byte[] key, byte[] value) {
    Row row = RowFactory.create("mysql.test." + topic, partition, offset++, key, value);
    topics.get(topic).addData(CollectionConverters.asScala(List.of(row)));
  }

  /** The rows of pageviews, if these are the topic's messages. */
  List<Row> pageviews(List<byte[]> values) {
    List<Row> messages = new ArrayList<>();
    values.forEach(v -> messages.add(RowFactory.create("pageviews", 0, offset++, null, v)));
    spark.createDataFrame(messages, MESSAGE).createOrReplaceTempView("pageviews");
    return spark.sql(ShopViews.PAGEVIEWS_STG).orderBy("offset").collectAsList();
  }

  /** Keeps what a query makes, from where one of this name ended. */
  StreamingQuery keep(String name, String sql) throws Exception {
    return keep(name, sql, "update");
  }

  StreamingQuery keep(String name, String sql, String mode) throws Exception {
    return keep(name, spark.sql(sql), mode);
  }

  StreamingQuery keep(String name, Dataset<Row> rows, String mode) throws Exception {
    VoidFunction2<Dataset<Row>, Long> write = (batch, id) -> take(batch.collectAsList());
    StreamingQuery query =
        kafka.query(name, rows).outputMode(mode).foreachBatch(write).start();
    queries.add(query);
    return query;
  }

  private synchronized void take(List<Row> messages) {
    for (Row each : messages) {
      written
          .computeIfAbsent(each.getAs("topic"), topic -> new TreeMap<>())
          .put(each.getAs("key"), each.getAs("value"));
    }
  }

  /** The rows of a view by their keys, when all that was sent is in it. */
  synchronized Map<String, JsonNode> rows(String view) throws IOException {
    Map<String, JsonNode> found = new TreeMap<>();
    for (var each : written.getOrDefault(Kafka.topicOf(view), Map.of()).entrySet()) {
      if (each.getValue() != null) {
        found.put(
            each.getKey(),
            EXACT
                .reader()
                .without(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
                .readTree(each.getValue()));
      }
    }
    return found;
  }

  /** Waits until all that was sent is in the views. */
  void settle() {
    queries.stream().filter(StreamingQuery::isActive).forEach(StreamingQuery::processAllAvailable);
  }

  @Override
  public void close() throws Exception {
    for (StreamingQuery query : queries) {
      query.stop();
    }
    registry.close();
  }
}
