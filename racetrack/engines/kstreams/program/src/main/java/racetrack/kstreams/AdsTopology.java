package racetrack.kstreams;

import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import racetrack.kstreams.Ads.Ad;
import racetrack.kstreams.Ads.Campaign;
import racetrack.kstreams.Ads.Change;
import racetrack.kstreams.Ads.Event;
import racetrack.kstreams.Ads.Placed;
import racetrack.kstreams.Ads.Window;
import racetrack.kstreams.Ads.WindowCount;

/**
 * Yahoo's streaming benchmark on Kafka Streams: counts how often ads were viewed, by campaign and
 * window of ten seconds. Every view is a topic, as in `ShopTopology`.
 *
 * <p>Views are counted by ad before they are joined with the ads, so the counts of an ad follow it to
 * another campaign. The counts of campaigns are then sums of such counts.
 *
 * <p>The start of a window is part of an ordinary key. Kafka Streams' own windows are not used,
 * because they close some time after their end, and later events would not be counted.
 */
final class AdsTopology {
  static final String EVENTS = "ad-events";
  static final List<String> INPUTS = List.of(EVENTS, "mysql.ads.campaigns", "mysql.ads.ads");
  private static final String VIEW = "view";

  private final TopologyContext topology;

  private AdsTopology(TopologyContext topology) {
    this.topology = topology;
  }

  static TopologyContext build(Settings settings, int partitions) {
    TopologyContext topology = new TopologyContext(settings, partitions);
    new AdsTopology(topology).connect();
    return topology;
  }

  private void connect() {
    topology.write(
        topology.changes("mysql.ads.campaigns", Object::toString, Campaign.class), "campaigns");
    KStream<String, Ad> ads = topology.changes("mysql.ads.ads", Object::toString, Ad.class);
    topology.write(ads, "ads");

    KStream<Integer, Event> events =
        topology.events(EVENTS, Ads.Message.SERDE).processValues(Locate::new);
    countWindows(events.filter((key, event) -> event.eventType().equals(VIEW)), ads);
    topology.countProgress(
        "other", events.filterNot((key, event) -> event.eventType().equals(VIEW)));
    topology.writeProgress("ad_events_progress", "ad_events_summary");
  }

  private static final class Locate
      extends ContextualFixedKeyProcessor<Integer, Ads.Message, Event> {
    @Override
    public void process(FixedKeyRecord<Integer, Ads.Message> record) {
      int partition = context().recordMetadata().orElseThrow().partition();
      context().forward(record.withValue(Event.of(record.value(), partition)));
    }
  }

  private void countWindows(KStream<Integer, Event> views, KStream<String, Ad> ads) {
    KStream<String, Placed> placed =
        ads.mapValues(Placed::of)
            .repartition(topology.toAll("ads", Serdes.String(), Placed.SERDE));
    KStream<Window, Change> changes =
        anything(views)
            .merge(anything(placed))
            .merge(anything(topology.commits("views", views)))
            .process(AdCounts.supplier(topology))
            .repartition(topology.byKey("changes", Window.SERDE, Change.SERDE));
    // Without a cache: the changes have waited for a commit already.
    KTable<Window, Long> counts =
        changes
            .filter((window, change) -> window.isOfCampaign())
            .groupByKey(Grouped.with(Window.SERDE, Change.SERDE))
            .aggregate(
                () -> 0L,
                (window, change, before) -> sum(change.views(), before),
                topology
                    .table("window-counts", Window.SERDE, Serdes.Long())
                    .withCachingDisabled());
    topology.write(counts.toStream().mapValues(WindowCount::of), "campaign_windows");
    topology.countProgress("views", changes);
  }

  /** Adds to a count; null if it is 0 then, so that the window has no row. */
  private static Long sum(long more, long before) {
    return before + more == 0 ? null : before + more;
  }

  @SuppressWarnings("unchecked")
  private static KStream<Object, Object> anything(KStream<?, ?> stream) {
    return (KStream<Object, Object>) stream;
  }
}
