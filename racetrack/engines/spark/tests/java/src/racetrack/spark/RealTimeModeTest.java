package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.Trigger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Why Spark's real-time mode is not used: once it takes these queries, it is to be. */
class RealTimeModeTest {
  private World world;

  @BeforeEach
  void open() throws Exception {
    world = new World();
  }

  @AfterEach
  void close() throws Exception {
    world.close();
  }

  @Test
  void itAggregatesNothing() throws Exception {
    String refused = refusalOf(counts().format("console"));
    assertTrue(refused.contains("HashAggregateExec"), refused);
    assertTrue(refused.contains("StateStoreSaveExec"), refused);
    assertTrue(refused.contains("ShuffleExchangeExec"), refused);
  }

  @Test
  void itHasNoForeachBatch() throws Exception {
    VoidFunction2<Dataset<Row>, Long> write = (batch, id) -> {};
    String refused = refusalOf(counts().foreachBatch(write));
    assertTrue(refused.contains("ForeachBatchSink is not in the sink allowlist"), refused);
  }

  private DataStreamWriter<Row> counts() {
    var values = LowLatencyMemoryStream.apply(1, Encoders.STRING(), world.spark.sqlContext());
    values.toDF().createOrReplaceTempView("values");
    var counts = world.spark.sql("SELECT value, count(*) AS total FROM values GROUP BY value");
    return world.kafka.query("real-time", counts);
  }

  private static String refusalOf(DataStreamWriter<Row> query) {
    Exception refused =
        assertThrows(
            Exception.class,
            () -> query.trigger(Trigger.RealTime("5 minutes")).start().awaitTermination(60_000));
    String said = refused.getMessage();
    assertTrue(said.contains("STREAMING_REAL_TIME_MODE"), said);
    return said;
  }
}
