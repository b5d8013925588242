package racetrack.kstreams;

import java.util.HashSet;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import racetrack.kstreams.Compact.Pair;
import racetrack.kstreams.Shop.FlaggedProfile;
import racetrack.kstreams.Shop.FlaggedView;
import racetrack.kstreams.Shop.Place;

/**
 * Finds all pageviews by flagged users. A user may be flagged at any time, and then the view must
 * also show that user's earlier pageviews. So all pageviews are kept, by user. A join of a stream
 * with a table would find only later pageviews.
 *
 * <p>Each task receives the pageviews of one partition, and all flags.
 */
final class Flagged extends ContextualProcessor<Long, Object, Place, FlaggedView> {
  private static final String PAGEVIEWS = "pageviews-by-user";
  private static final String FLAGS = "flagged";

  private final Set<Long> flagged = new HashSet<>();
  private KeyValueStore<Pair, Pageview.Kept> pageviews;
  private KeyValueStore<Long, Long> flags;

  @Override
  public void init(ProcessorContext<Place, FlaggedView> context) {
    super.init(context);
    pageviews = context.getStateStore(PAGEVIEWS);
    flags = context.getStateStore(FLAGS);
    try (var all = flags.all()) {
      all.forEachRemaining(each -> flagged.add(each.key));
    }
  }

  @Override
  public void process(Record<Long, Object> record) {
    if (record.value() instanceof Pageview pageview) {
      remember(pageview, record.timestamp());
    } else if (record.value() instanceof FlaggedProfile profile) {
      recall(profile.userId(), record.timestamp());
    }
  }

  private void remember(Pageview pageview, long timestamp) {
    pageviews.put(new Pair(pageview.userId(), pageview.offset()), Pageview.Kept.of(pageview));
    if (flagged.contains(pageview.userId())) {
      show(pageview, timestamp);
    }
  }

  private void recall(long user, long timestamp) {
    if (!flagged.add(user)) {
      return;
    }
    flags.put(user, user);
    int partition = context().taskId().partition();
    try (var found = pageviews.range(new Pair(user, 0), new Pair(user, Long.MAX_VALUE))) {
      found.forEachRemaining(
          each -> {
            Pageview.Message message = each.value.by(user);
            show(Pageview.of(message, partition, each.key.second()), timestamp);
          });
    }
  }

  private void show(Pageview pageview, long timestamp) {
    Place place = new Place(pageview.partition(), pageview.offset());
    context().forward(new Record<>(place, FlaggedView.of(pageview), timestamp));
  }

  static ProcessorSupplier<Long, Object, Place, FlaggedView> supplier(TopologyContext topology) {
    // Each pageview is written only once, so a cache would save nothing.
    return new Supplied<>(
        Flagged::new,
        Set.of(
            topology.uncachedStore(PAGEVIEWS, Pair.SERDE, Pageview.Kept.SERDE),
            topology.store(FLAGS, Serdes.Long(), Serdes.Long())));
  }
}
