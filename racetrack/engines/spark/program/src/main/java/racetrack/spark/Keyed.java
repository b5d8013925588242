package racetrack.spark;

import java.util.Collection;
import java.util.function.BiConsumer;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An operator of `transformWithState` from rows to rows, with state of its own for each key. Views
 * that Spark's SQL can't express on streams are computed by such operators.
 */
abstract class Keyed<K> extends StatefulProcessor<K, Row, Row> {
  private static final long serialVersionUID = 1;

  /** Names and types of the output's columns. */
  abstract String columns();

  /** Returns the output for the rows of one key in a micro-batch. */
  abstract Collection<Row> take(K key, java.util.Iterator<Row> rows, long nowMs);

  /** Returns the output for a timer of a key that has expired. */
  Collection<Row> expired(K key, long timerMs) {
    throw new UnsupportedOperationException("there are no timers");
  }

  /** Applies this operator to rows that have the key in a column of this name and type. */
  Dataset<Row> over(Dataset<Row> rows, String key, Encoder<K> type) {
    return over(rows, key, type, TimeMode.None());
  }

  Dataset<Row> over(Dataset<Row> rows, String key, Encoder<K> type, TimeMode time) {
    return rows.groupBy(key)
        .as(type, Encoders.row(rows.schema()))
        .transformWithState(
            this, time, OutputMode.Update(), Encoders.row(StructType.fromDDL(columns())));
  }

  <T> ValueState<T> value(String name, Encoder<T> type) {
    return getHandle().getValueState(name, type, TTLConfig.NONE());
  }

  <A, B> MapState<A, B> map(String name, Encoder<A> key, Encoder<B> type) {
    return getHandle().getMapState(name, key, type, TTLConfig.NONE());
  }

  static Encoder<Row> row(String columns) {
    return Encoders.row(StructType.fromDDL(columns));
  }

  /** Calls a function with each key and value; the function must not change the map. */
  static <A, B> void forEach(MapState<A, B> map, BiConsumer<A, B> function) {
    var all = map.iterator();
    while (all.hasNext()) {
      var entry = all.next();
      function.accept(entry._1(), entry._2());
    }
  }

  @Override
  public final Iterator<Row> handleInputRows(K key, Iterator<Row> rows, TimerValues time) {
    long nowMs = time.getCurrentProcessingTimeInMs();
    return asScala(take(key, CollectionConverters.asJava(rows), nowMs));
  }

  @Override
  public final Iterator<Row> handleExpiredTimer(K key, TimerValues time, ExpiredTimerInfo timer) {
    return asScala(expired(key, timer.getExpiryTimeInMs()));
  }

  private static Iterator<Row> asScala(Collection<Row> rows) {
    return CollectionConverters.asScala(rows.iterator());
  }
}
