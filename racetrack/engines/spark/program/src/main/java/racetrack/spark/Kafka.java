package racetrack.spark;

import static java.util.stream.Collectors.joining;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.concat;
import static org.apache.spark.sql.functions.lit;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.Trigger;
import racetrack.upsert.Cluster;

/** Builds Spark's streaming queries, which read topics of Kafka and write into topics. */
record Kafka(SparkSession spark, Settings settings) {
  static final String TABLES =
      """
      SELECT concat('spark.', substring_index(topic, '.', -1)) AS topic,
        debezium_key(key) AS key,
        debezium_row(value) AS value
      FROM changes
      """;
  /** Prefix of the options that Spark's connector passes on to Kafka's clients. */
  private static final String OPTION = "kafka.";
  /** A row may be as large as the broker accepts. */
  static final int MESSAGE_MAX_BYTES = 9 << 20;

  /** The topic of a view. */
  static String topicOf(String view) {
    return "spark." + view;
  }

  /** The messages of these topics, including all future ones. */
  Dataset<Row> stream(String... topics) {
    return spark
        .readStream()
        .format("kafka")
        .options(options())
        .option("subscribe", Stream.of(topics).map(cluster()::topic).collect(joining(",")))
        .option("startingOffsets", "earliest")
        .load();
  }

  /** Creates a query with this name. It resumes where an earlier query of this name ended. */
  DataStreamWriter<Row> query(String name, Dataset<Row> rows) {
    return rows.writeStream()
        .queryName(name)
        .outputMode("update")
        .trigger(every(0))
        .option("checkpointLocation", settings.stateFolder().resolve(name).toString());
  }

  /** The time between two micro-batches: that of the settings, but at least this. */
  Trigger every(long leastMs) {
    return Trigger.ProcessingTime(Math.max(leastMs, settings.triggerMs()));
  }

  /** Creates a query that writes rows with the columns `topic`, `key` and `value` into topics. */
  DataStreamWriter<Row> toTopics(String name, Dataset<Row> rows) {
    Column topic = concat(lit(cluster().prefix()), col("topic"));
    return query(name, rows.withColumn("topic", topic))
        .format("kafka")
        .options(options())
        .option("kafka.max.request.size", MESSAGE_MAX_BYTES);
  }

  /**
   * Like `toTopics`, but writes the rows of the views `progress` last in each micro-batch, because
   * these rows report that the others are written.
   */
  DataStreamWriter<Row> toTopicsInOrder(String name, Dataset<Row> rows, List<String> progress) {
    Upserts upserts =
        Upserts.to(cluster(), progress.stream().map(Kafka::topicOf).toList());
    VoidFunction2<Dataset<Row>, Long> write = (batch, id) -> upserts.write(batch.collectAsList());
    return query(name, rows).foreachBatch(write);
  }

  private Cluster cluster() {
    return settings.cluster();
  }

  private Map<String, String> options() {
    Map<String, String> found = new HashMap<>();
    cluster().client().forEach((name, value) -> found.put(OPTION + name, value));
    found.put("groupIdPrefix", cluster().topic("spark"));
    return found;
  }

  /** The rows of MySQL's tables, unchanged, each as a message of its view. */
  Dataset<Row> mirrored(List<String> tables) {
    stream(tables.toArray(String[]::new)).createOrReplaceTempView("changes");
    return spark.sql(TABLES);
  }
}
