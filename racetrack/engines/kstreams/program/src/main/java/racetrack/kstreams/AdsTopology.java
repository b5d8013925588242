package racetrack.kstreams;

import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import racetrack.kstreams.Ads.Ad;
import racetrack.kstreams.Ads.AdView;
import racetrack.kstreams.Ads.Campaign;
import racetrack.kstreams.Ads.Event;
import racetrack.kstreams.Ads.Window;
import racetrack.kstreams.Ads.WindowCount;

/**
 * Yahoo's streaming benchmark on Kafka Streams: counts how often ads were viewed, by campaign and
 * window of ten seconds. Every view is a topic, as in `ShopTopology`.
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

    KStream<byte[], Event> events =
        topology.read(EVENTS, Consumed.with(Serdes.ByteArray(), Ads.Message.SERDE))
            .process(Locate::new);
    countWindows(events.filter((key, event) -> event.eventType().equals(VIEW)), ads);
    topology.countProgress(
        "other", events.filterNot((key, event) -> event.eventType().equals(VIEW)));
    topology.writeProgress("ad_events_progress", "ad_events_summary");
  }

  private static final class Locate
      extends ContextualProcessor<byte[], Ads.Message, byte[], Event> {
    @Override
    public void process(Record<byte[], Ads.Message> record) {
      var place = context().recordMetadata().orElseThrow();
      Event found = Event.of(record.value(), place.partition(), place.offset());
      context().forward(record.withValue(found));
    }
  }

  private void countWindows(KStream<byte[], Event> views, KStream<String, Ad> ads) {
    Serde<String> text = Serdes.String();
    KStream<String, Object> known =
        ads.filter((id, ad) -> ad != null)
            .repartition(topology.toAll("ads", text, Json.of(Ad.class)))
            .mapValues(ad -> ad);
    KStream<Window, AdView> byWindow =
        views
            .<String, Object>map((key, event) -> KeyValue.pair(event.adId(), event))
            .merge(known)
            .process(new CampaignOf.Supplier(topology))
            .repartition(topology.byKey("views", Window.SERDE, AdView.SERDE));
    String counted = "window-counts";
    KTable<Window, Counts> counts =
        byWindow
            .groupByKey(Grouped.with(Window.SERDE, AdView.SERDE))
            .aggregate(
                () -> Counts.none(topology.partitions),
                (window, view, before) -> before.plus(view),
                topology.table(counted, Window.SERDE, Counts.SERDE));
    topology.write(counts.toStream().mapValues(WindowCount::of), "campaign_windows");
    var counter = new Counts.CounterSupplier(topology, "views", counted);
    topology.report(counts.toStream().process(counter, counted));
  }
}
