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

  /** Further topics that it writes. */
  default List<String> furtherTopics() {
    return List.of();
  }

  /** The view whose first row means that all are ready. */
  String summary();

  /** Returns whether a query that ended with this error may resume. */
  default boolean mayGoOn(StreamingQueryException error) {
    return false;
  }

  /** The queries that keep the views, each ready to be started. */
  List<DataStreamWriter<Row>> queries(Kafka kafka);
}
