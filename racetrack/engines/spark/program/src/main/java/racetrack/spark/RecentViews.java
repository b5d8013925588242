package racetrack.spark;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;

/**
 * Counts how often each profile was viewed in each of the last ten minutes, keyed by owner.
 *
 * <p>Spark's own windows move with the time of events, and do not subtract old events when only the
 * clock moves on. So this class also counts views by second, and a timer subtracts the count of a
 * second when it has ended ten minutes ago. The window therefore moves in steps of one second.
 */
final class RecentViews extends Keyed<Long> {
  private static final long serialVersionUID = 1;
  private static final long WINDOW_S = 600;
  private static final long MINUTE_S = 60;

  /** Epoch second → number of views. */
  private transient MapState<Long, Long> bySecond;
  /** First epoch second of a minute → number of views. */
  private transient MapState<Long, Long> byMinute;

  static Dataset<Row> of(Dataset<Row> views) {
    return new RecentViews().over(views, "id", Encoders.LONG(), TimeMode.ProcessingTime());
  }

  @Override
  String columns() {
    return "user_id BIGINT, received_at_minute BIGINT, pageviews BIGINT";
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    bySecond = map("seconds", Encoders.LONG(), Encoders.LONG());
    byMinute = map("minutes", Encoders.LONG(), Encoders.LONG());
  }

  @Override
  Collection<Row> take(Long owner, Iterator<Row> rows, long nowMs) {
    Map<Long, Long> counted = new HashMap<>();
    while (rows.hasNext()) {
      long second = rows.next().<Long>getAs("received_at") / 1_000;
      if (goneAt(second) > nowMs) {
        counted.merge(second, 1L, Long::sum);
      }
    }
    Set<Long> minutes = new TreeSet<>();
    counted.forEach(
        (second, views) -> {
          Long before = bySecond.getValue(second);
          bySecond.updateValue(second, before == null ? views : before + views);
          if (before == null) {
            getHandle().registerTimer(goneAt(second));
          }
          minutes.add(add(second, views));
        });
    return output(owner, minutes);
  }

  @Override
  Collection<Row> expired(Long owner, long timerMs) {
    long second = timerMs / 1_000 - WINDOW_S - 1;
    long views = bySecond.getValue(second);
    bySecond.removeKey(second);
    return output(owner, Set.of(add(second, -views)));
  }

  /** Adds to the count of a minute, and returns the minute. */
  private long add(long second, long views) {
    long minute = second / MINUTE_S * MINUTE_S;
    Long before = byMinute.getValue(minute);
    long now = (before == null ? 0 : before) + views;
    if (now == 0) {
      byMinute.removeKey(minute);
    } else {
      byMinute.updateValue(minute, now);
    }
    return minute;
  }

  private Collection<Row> output(long owner, Set<Long> minutes) {
    List<Row> rows = new ArrayList<>();
    for (long minute : minutes) {
      rows.add(RowFactory.create(owner, minute * 1_000, byMinute.getValue(minute)));
    }
    return rows;
  }

  /** The time at which a second is completely outside of the window. */
  private static long goneAt(long second) {
    return (second + WINDOW_S + 1) * 1_000;
  }
}
