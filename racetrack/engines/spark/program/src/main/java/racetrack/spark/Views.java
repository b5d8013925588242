package racetrack.spark;

import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.StreamingQueryException;

/** The views of one workload. */
interface Views {
  /** The topics that they are made of. */
  List<String> inputs();

  List<String> views();

  /** Those that it writes beside. */
  default List<String> furtherTopics() {
    return List.of();
  }

  /** The view whose first row says that they all stand. */
  String summary();

  /** Whether a query that ended so may begin again where it was. */
  default boolean mayGoOn(StreamingQueryException error) {
    return false;
  }

  /** What keeps them, each ready to be started. */
  List<DataStreamWriter<Row>> queries(Kafka kafka);
}
