package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
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

/**
 * What Spark refuses on streams: Nexmark's queries as docs/nexmark.md quotes it, and all in its
 * real-time mode. Once it takes these queries, it is to be used for them.
 */
class RefusedTest {
  private static final String JOINED =
      "FROM auction A JOIN bid B ON A.id = B.auction"
          + " WHERE B.dateTime BETWEEN A.dateTime AND A.expires";

  /** Spark's default, which the program changes for the shop. */
  private static final String CORRECTNESS =
      "spark.sql.streaming.statefulOperator.checkCorrectness.enabled";

  private static final String ROW_NUMBER = "Window function is not supported in ROW_NUMBER()";
  private static final String WITHOUT_WATERMARK =
      "not supported for streaming aggregations without watermark";

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

  @Test
  void itRefusesAggregatesOfAJoin() {
    String prices =
        "SELECT max(B.price) AS final, A.category " + JOINED + " GROUP BY A.id, A.category";
    String average = "SELECT category, avg(final) FROM (" + prices + ") GROUP BY category";
    refuses(average, "update", "Detected pattern of possible 'correctness' issue");
    refuses(average, "append", WITHOUT_WATERMARK);
  }

  @Test
  void itRefusesRowNumbers() {
    String ranked =
        "SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rank FROM bid";
    refuses("SELECT * FROM (" + ranked + ") WHERE rank <= 10", "update", ROW_NUMBER);
    String won =
        "SELECT A.*, B.price, row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC) AS rank ";
    refuses("SELECT * FROM (" + won + JOINED + ") WHERE rank <= 1", "append", ROW_NUMBER);
  }

  @Test
  void itRefusesDistinctCounts() {
    String words = "Distinct aggregations are not supported on streaming DataFrames/Datasets";
    refuses("SELECT count(DISTINCT bidder) FROM bid", "update", words);
  }

  @Test
  void itRefusesToJoinWindows() {
    String counts =
        "SELECT auction, count(*) AS num, window(timestamp_millis(dateTime), '10 seconds',"
            + " '2 seconds') AS w FROM bid GROUP BY auction, w";
    String most = "SELECT max(num) AS maxn, w FROM (" + counts + ") GROUP BY w";
    String q5 =
        "SELECT auction, num FROM (%s) A JOIN (%s) B ON A.w = B.w AND num >= maxn"
            .formatted(counts, most);
    refuses(q5, "append", WITHOUT_WATERMARK);
    String persons =
        "SELECT id, name, window(timestamp_millis(dateTime), '10 seconds') AS w FROM person"
            + " GROUP BY id, name, w";
    String sellers =
        "SELECT seller, window(timestamp_millis(dateTime), '10 seconds') AS w FROM auction"
            + " GROUP BY seller, w";
    String q8 =
        "SELECT id FROM (%s) P JOIN (%s) A ON id = seller AND P.w = A.w"
            .formatted(persons, sellers);
    refuses(q8, "append", WITHOUT_WATERMARK);
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

  private void refuses(String query, String mode, String words) {
    var error = assertThrows(AnalysisException.class, () -> world.keep("refused", query, mode));
    assertTrue(error.getMessage().contains(words), error.getMessage());
  }
}
