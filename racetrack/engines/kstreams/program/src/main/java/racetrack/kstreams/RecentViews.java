package racetrack.kstreams;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import racetrack.kstreams.Compact.Pair;
import racetrack.kstreams.Pageview.View;
import racetrack.kstreams.Shop.Minute;
import racetrack.kstreams.Shop.MinuteViews;

/**
 * Counts how often each profile was viewed in each of the last ten minutes.
 *
 * <p>Kafka Streams' own windows move with the time of events, and do not subtract old events when
 * only the clock moves on. So this class also counts views by second, and five times per second it
 * subtracts the counts of seconds that ended ten minutes ago. The window therefore moves in steps
 * of one second.
 */
final class RecentViews extends ContextualProcessor<Long, View, Minute, MinuteViews> {
  private static final Duration LOOK_EVERY = Duration.ofMillis(200);
  private static final long WINDOW_S = 600;
  private static final long MINUTE_MS = 60_000;
  private static final String BY_SECOND = "views-by-second";
  private static final String BY_MINUTE = "views-by-minute";

  /** (second, owner) → number of views received in that second (epoch seconds). */
  private KeyValueStore<Pair, Long> bySecond;
  /**
   * (owner, minute) → number of views; the minute is given by its beginning in epoch milliseconds.
   */
  private KeyValueStore<Pair, Long> byMinute;
  /** All earlier seconds have been subtracted, so the next search for old seconds begins here. */
  private long oldestSecond;

  @Override
  public void init(ProcessorContext<Minute, MinuteViews> context) {
    super.init(context);
    bySecond = context.getStateStore(BY_SECOND);
    byMinute = context.getStateStore(BY_MINUTE);
    context.schedule(LOOK_EVERY, PunctuationType.WALL_CLOCK_TIME, this::takeBack);
  }

  @Override
  public void process(Record<Long, View> record) {
    long second = record.value().receivedAt() / 1_000;
    if (second > lastGone(context().currentSystemTimeMs())) {
      Pair key = new Pair(second, record.key());
      Long before = bySecond.get(key);
      bySecond.put(key, before == null ? 1 : before + 1);
      add(record.key(), second, 1, record.timestamp());
    }
  }

  private void takeBack(long nowMs) {
    long lastGone = lastGone(nowMs);
    if (lastGone < oldestSecond) {
      return;
    }
    List<KeyValue<Pair, Long>> gone = new ArrayList<>();
    try (var found =
        bySecond.range(new Pair(oldestSecond, 0), new Pair(lastGone, Long.MAX_VALUE))) {
      found.forEachRemaining(gone::add);
    }
    for (KeyValue<Pair, Long> each : gone) {
      bySecond.delete(each.key);
      add(each.key.second(), each.key.first(), -each.value, nowMs);
    }
    oldestSecond = lastGone + 1;
  }

  private void add(long owner, long second, long views, long timestamp) {
    long minute = second * 1_000 / MINUTE_MS * MINUTE_MS;
    Pair key = new Pair(owner, minute);
    Long before = byMinute.get(key);
    long now = (before == null ? 0 : before) + views;
    MinuteViews row = now == 0 ? null : new MinuteViews(owner, minute, now);
    byMinute.put(key, now == 0 ? null : now);
    context().forward(new Record<>(new Minute(owner, minute), row, timestamp));
  }

  /** The newest second that is completely outside the window. */
  private static long lastGone(long nowMs) {
    return nowMs / 1_000 - WINDOW_S - 1;
  }

  static ProcessorSupplier<Long, View, Minute, MinuteViews> supplier(TopologyContext topology) {
    return new Supplied<>(
        RecentViews::new,
        Set.of(
            topology.store(BY_SECOND, Pair.SERDE, Serdes.Long()),
            topology.store(BY_MINUTE, Pair.SERDE, Serdes.Long())));
  }
}
