package racetrack.spark;

import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.DataStreamWriter;

/** The views of one workload. */
interface Views {
  /** The topics from which the views are computed. */
  List<String> inputs();

  List<String> views();

  /** Topics that are written in addition to those of the views. */
  default List<String> furtherTopics() {
    return List.of();
  }

  /** Those of the views whose rows have no key: they are never replaced. */
  default List<String> appended() {
    return List.of();
  }

  /** First rows in all of these views show that all views are ready. */
  List<String> firstWritten();

  /** The queries that maintain the views, ready to be started. */
  List<DataStreamWriter<Row>> queries(Kafka kafka);
}
