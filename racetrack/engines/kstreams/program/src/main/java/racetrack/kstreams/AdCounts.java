package racetrack.kstreams;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import racetrack.kstreams.Ads.AdWindow;
import racetrack.kstreams.Ads.Change;
import racetrack.kstreams.Ads.Event;
import racetrack.kstreams.Ads.Placed;
import racetrack.kstreams.Ads.Window;

/**
 * Counts views by ad and window, then joins the counts with the ads: forwards how the counts of
 * campaigns change.
 *
 * <p>All counts are kept, so that they follow an ad that moves to another campaign: they are
 * subtracted from the old campaign, and added to the new one. In the same way, views of an ad that
 * is not known yet count as soon as it is; a join of a stream with a table would drop them.
 *
 * <p>Views are counted in memory until Kafka Streams commits. Then their number in each window is
 * added to the store, and one change per campaign and window is forwarded, as part of the commit.
 *
 * <p>Each task receives the views of one partition, all ads, and a record of any other type at each
 * commit.
 */
final class AdCounts extends ContextualProcessor<Object, Object, Window, Change> {
  private static final String ADS = "campaign-of-ad";
  private static final String COUNTS = "views-by-ad";

  /** The views since the last commit. */
  private final Map<AdWindow, Change> added = new HashMap<>();

  private KeyValueStore<String, String> campaignOf;
  private KeyValueStore<AdWindow, Long> counts;

  @Override
  public void init(ProcessorContext<Window, Change> context) {
    super.init(context);
    campaignOf = context.getStateStore(ADS);
    counts = context.getStateStore(COUNTS);
  }

  @Override
  public void process(Record<Object, Object> record) {
    if (record.value() instanceof Event view) {
      added.merge(AdWindow.of(view), Change.of(view), Change::plus);
    } else if (record.value() instanceof Placed ad) {
      move((String) record.key(), ad.campaignId(), record.timestamp());
    } else {
      commit(record.timestamp());
    }
  }

  private void commit(long timestamp) {
    Map<Window, Change> changes = new HashMap<>();
    added.forEach(
        (key, change) -> {
          Long before = counts.get(key);
          counts.put(key, before == null ? change.views() : before + change.views());
          String campaign = campaignOf.get(key.adId());
          changes.merge(
              new Window(campaign == null ? Window.NO_CAMPAIGN : campaign, key.windowStartMs()),
              change,
              Change::plus);
        });
    added.clear();
    changes.forEach((window, change) -> context().forward(new Record<>(window, change, timestamp)));
  }

  /** `to` is the campaign of an ad; null if the ad was deleted. */
  private void move(String ad, String to, long timestamp) {
    String from = campaignOf.get(ad);
    if (Objects.equals(from, to)) {
      return;
    }
    campaignOf.put(ad, to);
    try (var rows = counts.range(new AdWindow(ad, 0), new AdWindow(ad, Long.MAX_VALUE))) {
      rows.forEachRemaining(
          row -> {
            // The range may contain ads whose id only begins like this one.
            if (row.key.adId().equals(ad)) {
              add(from, row.key.windowStartMs(), -row.value, timestamp);
              add(to, row.key.windowStartMs(), row.value, timestamp);
            }
          });
    }
  }

  private void add(String campaign, long windowStartMs, long views, long timestamp) {
    if (campaign != null) {
      Window window = new Window(campaign, windowStartMs);
      context().forward(new Record<>(window, Change.of(views), timestamp));
    }
  }

  static ProcessorSupplier<Object, Object, Window, Change> supplier(TopologyContext topology) {
    // A cache of the counts would be written too late: they change while the caches are written.
    return new Supplied<>(
        AdCounts::new,
        Set.of(
            topology.store(ADS, Serdes.String(), Serdes.String()),
            topology.uncachedStore(COUNTS, AdWindow.SERDE, Serdes.Long())));
  }
}
