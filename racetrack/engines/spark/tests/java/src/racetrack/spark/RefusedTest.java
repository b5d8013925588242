package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.Trigger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What Spark refuses on streams: Nexmark's queries as docs/nexmark.md quotes it, and all in its
 * real-time mode. Once it takes these queries, it is to be used for them.
 */
class RefusedTest {
  /** Spark's default, which the program changes for the shop. */
  private static final String CORRECTNESS =
      "spark.sql.streaming.statefulOperator.checkCorrectness.enabled";

  private static final Map<String, String> QUERIES =
      Map.of(
          "aggregates of a join",
          """
          SELECT category, avg(final) FROM (
            SELECT max(B.price) AS final, A.category FROM auction A JOIN bid B ON A.id = B.auction
            WHERE B.dateTime BETWEEN A.dateTime AND A.expires GROUP BY A.id, A.category
          ) GROUP BY category
          """,
          "row numbers",
          """
          SELECT * FROM (
            SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rank FROM bid
          ) WHERE rank <= 10
          """,
          "distinct counts",
          "SELECT count(DISTINCT bidder) FROM bid",
          "joined windows",
          """
          SELECT id FROM (
            SELECT id, window(timestamp_millis(dateTime), '10 seconds') AS w FROM person
            GROUP BY id, w
          ) P JOIN (
            SELECT seller, window(timestamp_millis(dateTime), '10 seconds') AS w FROM auction
            GROUP BY seller, w
          ) A ON id = seller AND P.w = A.w
          """);

  private World world;

  @BeforeEach
  void open() throws Exception {
    world = new World();
    world.topic("nexmark", "nexmark");
    world.spark.conf().set(CORRECTNESS, true);
    Nexmark.createViews(world.spark);
  }

  @AfterEach
  void close() throws Exception {
    world.spark.conf().set(CORRECTNESS, false);
    world.close();
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', textBlock = """
      aggregates of a join | update | Detected pattern of possible
      aggregates of a join | append | not supported for streaming aggregations without watermark
      row numbers | update | Window function is not supported in ROW_NUMBER()
      distinct counts | update | Distinct aggregations are not supported on streaming
      joined windows | append | not supported for streaming aggregations without watermark
      """)
  void itRefuses(String what, String mode, String words) {
    String query = QUERIES.get(what);
    var error = assertThrows(AnalysisException.class, () -> world.keep("refused", query, mode));
    assertTrue(error.getMessage().contains(words), error.getMessage());
  }

  @Test
  void realTimeModeAggregatesNothingAndHasNoForeachBatch() throws Exception {
    var values = LowLatencyMemoryStream.apply(1, Encoders.STRING(), world.spark.sqlContext());
    values.toDF().createOrReplaceTempView("values");
    var counts = world.spark.sql("SELECT value, count(*) AS total FROM values GROUP BY value");
    String refused = inRealTime(world.kafka.query("counts", counts).format("console"));
    for (String step : List.of("HashAggregateExec", "StateStoreSaveExec", "ShuffleExchangeExec")) {
      assertTrue(refused.contains(step), refused);
    }
    VoidFunction2<Dataset<Row>, Long> write = (batch, id) -> {};
    refused = inRealTime(world.kafka.query("written", counts).foreachBatch(write));
    assertTrue(refused.contains("ForeachBatchSink is not in the sink allowlist"), refused);
  }

  private static String inRealTime(DataStreamWriter<Row> query) {
    Exception refused =
        assertThrows(
            Exception.class,
            () -> query.trigger(Trigger.RealTime("5 minutes")).start().awaitTermination(60_000));
    String said = refused.getMessage();
    assertTrue(said.contains("STREAMING_REAL_TIME_MODE"), said);
    return said;
  }
}
