package racetrack.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;

/** Makes rows of rows, with state that is kept for each key, forever. */
abstract class Keyed<K> extends StatefulProcessor<K, Row, Row> {
  private static final long serialVersionUID = 1;

  /** What this makes of `rows`, whose keys are in the column `key`. */
  final Dataset<Row> madeOf(
      Dataset<Row> rows, String key, Encoder<K> keys, TimeMode time, StructType made) {
    return Session.coalesced(rows)
        .groupBy(key)
        .as(keys, Encoders.row(rows.schema()))
        .transformWithState(this, time, OutputMode.Update(), Encoders.row(made));
  }

  final ValueState<String> text(String name) {
    return getHandle().getValueState(name, Encoders.STRING(), TTLConfig.NONE());
  }

  final <A, B> MapState<A, B> map(String name, Encoder<A> keys, Encoder<B> values) {
    return getHandle().getMapState(name, keys, values, TTLConfig.NONE());
  }

  static void set(ValueState<String> state, String value) {
    if (value == null) {
      state.clear();
    } else {
      state.update(value);
    }
  }
}
