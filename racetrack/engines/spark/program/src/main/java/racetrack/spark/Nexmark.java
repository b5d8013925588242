package racetrack.spark;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;

/**
 * Nexmark on Spark Structured Streaming: the views `person`, `auction` and `bid`, which all queries
 * read. Each query is a class of its own, such as `Q3`, and writes its result to a topic, such as
 * `spark.q3`. If rows are only added, each is a message without a key.
 *
 * <p>docs/nexmark.md lists the queries that Spark's SQL refuses on streams. Each query reads the
 * topic.
 *
 * <p>If you change this file, it is compiled at the next start.
 */
final class Nexmark implements Views {
  static final String EVENTS = "nexmark";
  /** The kinds of events in the order of `event_type`, with their fields. */
  private static final List<String> KINDS = List.of("person", "auction", "bid");

  private static final Map<String, String> FIELDS =
      Map.of(
          "person",
          "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING,"
              + " state STRING, extra STRING",
          "auction",
          "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,"
              + " expires BIGINT, seller BIGINT, category BIGINT, extra STRING",
          "bid",
          "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, extra STRING");

  private static final Map<String, Query> QUERIES =
      new TreeMap<>(
          Map.of(
              "q0", Q0.QUERY,
              "q1", Q1.QUERY,
              "q2", Q2.QUERY,
              "q3", Q3.QUERY,
              "q17", Q17.QUERY,
              "q18", Q18.QUERY,
              "q20", Q20.QUERY,
              "q22", Q22.QUERY));

  private final List<String> selected;

  Nexmark(List<String> selected) {
    if (!QUERIES.keySet().containsAll(selected)) {
      throw new IllegalArgumentException(
          "NEXMARK_QUERIES=" + selected + ": there are " + QUERIES.keySet());
    }
    this.selected = selected;
  }

  /** A query, and the key of its rows: names of columns. Without a key, rows are only added. */
  record Query(String key, String sql) {
    private static final String MESSAGES =
        """
        SELECT '%s' AS topic, %s AS key, to_json(struct(*)) AS value
        FROM (%s)
        """;

    static Query ofAddedRows(String sql) {
      return new Query("", sql);
    }

    private boolean isKeyed() {
      return !key.isEmpty();
    }

    String messages(String view) {
      String text = isKeyed() ? "to_json(struct(" + key + "))" : "CAST(NULL AS STRING)";
      return MESSAGES.formatted(Kafka.topicOf(view), text, sql);
    }

    String outputMode() {
      return isKeyed() ? "update" : "append";
    }
  }

  /** Creates the views of all events from the view `nexmark`. */
  static void createViews(SparkSession spark) {
    String records =
        KINDS.stream()
            .map(name -> "%s STRUCT<%s>".formatted(name, FIELDS.get(name)))
            .collect(joining(", "));
    spark
        .sql(
            """
            SELECT event.*
            FROM (
              SELECT from_json(
                CAST(value AS STRING), 'event_type INT, %s, dateTime BIGINT') AS event
              FROM nexmark
            )
            """
                .formatted(records))
        .createOrReplaceTempView("events");
    KINDS.forEach(name -> spark.sql(viewOf(name)).createOrReplaceTempView(name));
  }

  /** Selects the valid events of a kind: all fields are required, and no other record. */
  private static String viewOf(String kind) {
    Stream<String> fields =
        Stream.of(FIELDS.get(kind).split(", ")).map(field -> kind + "." + field.split(" ")[0]);
    Stream<String> others =
        KINDS.stream().filter(name -> !name.equals(kind)).map(name -> name + " IS NULL");
    String required = fields.map(field -> field + " IS NOT NULL").collect(joining(" AND "));
    return "SELECT %s.*, dateTime FROM events WHERE event_type = %d AND dateTime > 0 AND %s AND %s"
        .formatted(kind, KINDS.indexOf(kind), required, others.collect(joining(" AND ")));
  }

  @Override
  public List<String> inputs() {
    return List.of(EVENTS);
  }

  @Override
  public List<String> views() {
    return selected;
  }

  @Override
  public List<String> appended() {
    return selected.stream().filter(name -> !QUERIES.get(name).isKeyed()).toList();
  }

  @Override
  public List<String> firstWritten() {
    return selected;
  }

  @Override
  public List<DataStreamWriter<Row>> queries(Kafka kafka) {
    kafka.stream(EVENTS).createOrReplaceTempView("nexmark");
    createViews(kafka.spark());
    List<DataStreamWriter<Row>> writers = new ArrayList<>();
    for (String name : selected) {
      Query query = QUERIES.get(name);
      writers.add(
          kafka
              .toTopics(name, kafka.spark().sql(query.messages(name)))
              .outputMode(query.outputMode()));
    }
    return writers;
  }
}
