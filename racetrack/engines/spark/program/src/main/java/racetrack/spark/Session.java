package racetrack.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;

/** Opens a Spark session: configured by the settings, and otherwise as described below. */
final class Session {
  private static final String STATE_STORE =
      "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider";
  private static final String BY_FILE_SYSTEM =
      "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager";
  private static final String PARTITIONS = "spark.sql.shuffle.partitions";
  private static final int IDLE_MS = 100;

  private Session() {}

  static SparkSession open(Settings settings) {
    SparkSession.Builder builder =
        builder(settings)
            .config("spark.ui.enabled", false)
            .config("spark.local.dir", settings.stateFolder().resolve("local").toString())
            .config("spark.sql.warehouse.dir", settings.stateFolder().resolve("tables").toString())
            .config(PARTITIONS, settings.shufflePartitions())
            // Time after which a query without new messages polls again. With Spark's default, 10
            // ms, polling tables that hardly ever change would take a considerable part of a core.
            .config("spark.sql.streaming.pollingDelay", IDLE_MS)
            // Isolates the classes of several sessions from each other. Here there is only one
            // session.
            .config("spark.sql.artifact.isolation.enabled", false)
            .config("spark.hadoop.fs.file.impl", LocalFiles.class.getName())
            .config("spark.sql.streaming.checkpointFileManagerClass", BY_FILE_SYSTEM)
            // transformWithState requires RocksDB.
            .config("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
            // A micro-batch then writes its changes only, not a snapshot of all state.
            .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", true)
            // Spark refuses an operator after an aggregation that emits changed rows, because rows
            // might be late. There is no watermark, so no row is ever late.
            .config("spark.sql.streaming.statefulOperator.checkCorrectness.enabled", false)
            // Jobs take turns. FAIR prefers the first pools (docs/tuning.md).
            .config("spark.scheduler.mode", "FIFO")
            .config("spark.sql.session.timeZone", "UTC");
    settings.properties().forEach(builder::config);
    SparkSession spark = builder.getOrCreate();
    Debezium debezium = new Debezium(settings.registry());
    UDF1<byte[], String> key = debezium::key;
    UDF1<byte[], String> row = debezium::row;
    UDF1<byte[], String> before = debezium::rowBefore;
    spark.udf().register("debezium_key", key, DataTypes.StringType);
    spark.udf().register("debezium_row", row, DataTypes.StringType);
    spark.udf().register("debezium_row_before", before, DataTypes.StringType);
    return spark;
  }

  /**
   * Returns rows in one partition if stateful operators have one, so that Spark needs neither a
   * shuffle before them nor a task for each partition of their input. With more, coalescing would
   * move partitions away from the executors that have their state.
   */
  static Dataset<Row> coalesced(Dataset<Row> rows) {
    boolean isOne = rows.sparkSession().conf().get(PARTITIONS).equals("1");
    return isOne ? rows.coalesce(1) : rows;
  }

  /**
   * Runs Spark inside this JVM, unless a system property names a master; Spark reads these
   * properties itself.
   */
  private static SparkSession.Builder builder(Settings settings) {
    SparkSession.Builder builder = SparkSession.builder();
    if (System.getProperty("spark.master") != null) {
      return builder;
    }
    return builder
        .appName("racetrack")
        .master("local[" + (settings.cores() == 0 ? "*" : settings.cores()) + "]")
        // Spark listens for executors on other machines, even if there are none. So listen on
        // loopback only.
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1");
  }
}
