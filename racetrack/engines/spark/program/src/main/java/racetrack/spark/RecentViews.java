package racetrack.spark;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Counts the views of each profile in the last ten minutes, by minute. The window moves on by whole
 * seconds: a timer for each second in which a profile was viewed takes its views back.
 *
 * <p>Views that are older when they arrive are not counted.
 */
final class RecentViews extends Keyed<Long> {
  private static final long serialVersionUID = 1;
  /** Seconds until a second is older than ten minutes as a whole. */
  private static final long STAYS_S = 601;
  private static final StructType COUNT =
      StructType.fromDDL("user_id BIGINT, received_at_minute BIGINT, pageviews BIGINT");

  private transient MapState<Long, Long> bySecond;
  private transient MapState<Long, Long> byMinute;

  /** `views` have the columns `profile_id` and `received_at`. */
  static Dataset<Row> counted(Dataset<Row> views) {
    return new RecentViews()
        .madeOf(views, "profile_id", Encoders.LONG(), TimeMode.ProcessingTime(), COUNT);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    bySecond = map("second", Encoders.LONG(), Encoders.LONG());
    byMinute = map("minute", Encoders.LONG(), Encoders.LONG());
  }

  @Override
  public Iterator<Row> handleInputRows(Long profile, Iterator<Row> rows, TimerValues time) {
    Map<Long, Long> seen = new TreeMap<>();
    while (rows.hasNext()) {
      long second = rows.next().<Long>getAs("received_at") / 1000;
      if (expiryMs(second) > time.getCurrentProcessingTimeInMs()) {
        seen.merge(second, 1L, Long::sum);
      }
    }
    Map<Long, Row> counts = new TreeMap<>();
    seen.forEach(
        (second, views) -> {
          Long before = bySecond.getValue(second);
          if (before == null) {
            getHandle().registerTimer(expiryMs(second));
          }
          bySecond.updateValue(second, before == null ? views : before + views);
          counts.put(second / 60, add(profile, second, views));
        });
    return CollectionConverters.asScala(counts.values().iterator());
  }

  @Override
  public Iterator<Row> handleExpiredTimer(Long profile, TimerValues time, ExpiredTimerInfo timer) {
    long second = timer.getExpiryTimeInMs() / 1000 - STAYS_S;
    Row count = add(profile, second, -bySecond.getValue(second));
    bySecond.removeKey(second);
    return CollectionConverters.asScala(List.of(count).iterator());
  }

  private static long expiryMs(long second) {
    return 1000 * (second + STAYS_S);
  }

  /** Returns the number of views in the minute of a second, in which there are `views` more. */
  private Row add(long profile, long second, long views) {
    long minute = second / 60;
    Long before = byMinute.getValue(minute);
    long now = before == null ? views : before + views;
    if (now == 0) {
      byMinute.removeKey(minute);
    } else {
      byMinute.updateValue(minute, now);
    }
    return RowFactory.create(profile, 60_000 * minute, now);
  }
}
