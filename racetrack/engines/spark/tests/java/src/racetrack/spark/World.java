package racetrack.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.types.StructType;
import racetrack.upsert.Cluster;
import racetrack.upsert.Stage;
import scala.jdk.javaapi.CollectionConverters;

/** Queries without Kafka. */
final class World extends Stage {
  /** A query with timers would never have processed all that there is. */
  static final Map<String, String> PROPERTIES =
      Map.of(
          "spark.sql.streaming.pollingDelay", "10",
          "spark.sql.streaming.noDataMicroBatches.enabled", "false");
  /** What Kafka's source says of a message. */
  private static final StructType MESSAGE =
      StructType.fromDDL("topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY");

  final SparkSession spark;
  final Kafka kafka;
  private final Map<String, MemoryStream<Row>> topics = new TreeMap<>();
  /** View → what starts the query that makes it. */
  private final Map<String, Start> makers = new HashMap<>();
  private final List<StreamingQuery> queries = new ArrayList<>();
  /** Topic → key → row, as the queries write them. */
  private final Map<String, Map<String, String>> written = new TreeMap<>();
  private long offset;

  interface Start {
    void run() throws Exception;
  }

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
  World topic(String topic, String name) {
    MemoryStream<Row> messages = MemoryStream.apply(Encoders.row(MESSAGE), spark);
    topics.put(topic, messages);
    messages.toDF().createOrReplaceTempView(name);
    return this;
  }

  @Override
  protected void send(String topic, int partition, byte[] key, byte[] value) {
    Row row = RowFactory.create(topic, partition, offset++, key, value);
    topics.get(topic).addData(CollectionConverters.asScala(List.of(row)));
  }

  /** The rows of pageviews, if these are the topic's messages. */
  List<Row> pageviews(List<byte[]> values) {
    List<Row> messages = new ArrayList<>();
    values.forEach(v -> messages.add(RowFactory.create("pageviews", 0, offset++, null, v)));
    spark.createDataFrame(messages, MESSAGE).createOrReplaceTempView("pageviews");
    return spark.sql(ShopViews.PAGEVIEWS_STG).orderBy("offset").collectAsList();
  }

  /** Makes these views with a query that starts when one of them is first asked for. */
  World make(Start start, String... views) {
    for (String view : views) {
      makers.put(view, start);
    }
    return this;
  }

  /** Keeps what a query makes, from where one of this name ended. */
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

  @Override
  public List<JsonNode> rows(String view) {
    Start start = makers.get(view);
    if (makers.values().removeIf(each -> each == start)) {
      try {
        start.run();
      } catch (Exception error) {
        throw new AssertionError(error);
      }
    }
    queries.stream().filter(StreamingQuery::isActive).forEach(StreamingQuery::processAllAvailable);
    synchronized (this) {
      return written.getOrDefault(Kafka.topicOf(view), Map.of()).values().stream()
          .filter(Objects::nonNull)
          .map(Stage::parsed)
          .toList();
    }
  }

  @Override
  public void close() throws Exception {
    for (StreamingQuery query : queries) {
      query.stop();
    }
    super.close();
  }
}
