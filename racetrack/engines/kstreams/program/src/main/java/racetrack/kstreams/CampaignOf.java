package racetrack.kstreams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import racetrack.kstreams.Ads.Ad;
import racetrack.kstreams.Ads.AdView;
import racetrack.kstreams.Ads.Event;
import racetrack.kstreams.Ads.Window;

/**
 * Adds to each event the campaign of its ad. An event whose ad is not known yet waits for the ad; a
 * join with a global table would drop the event.
 *
 * <p>If an ad moves to another campaign, only later events count for the new one. In the benchmark,
 * no ad moves.
 *
 * <p>Each task receives the events of one partition, and all ads.
 */
final class CampaignOf extends ContextualProcessor<String, Object, Window, AdView> {
  private static final String ADS = "campaign-of-ad";
  private static final String WAITING = "waiting";

  private final Map<String, String> campaignOf = new HashMap<>();
  /** Ad → the offsets of the events that wait for it. */
  private final Map<String, List<Long>> waitingFor = new HashMap<>();

  private KeyValueStore<String, String> ads;
  private KeyValueStore<Long, Event> waiting;

  @Override
  public void init(ProcessorContext<Window, AdView> context) {
    super.init(context);
    ads = context.getStateStore(ADS);
    waiting = context.getStateStore(WAITING);
    try (var all = ads.all()) {
      all.forEachRemaining(each -> campaignOf.put(each.key, each.value));
    }
    try (var all = waiting.all()) {
      all.forEachRemaining(each -> queueOf(each.value.adId()).add(each.key));
    }
  }

  @Override
  public void process(Record<String, Object> record) {
    if (record.value() instanceof Event event) {
      take(event, record.timestamp());
    } else if (record.value() instanceof Ad ad) {
      take(ad, record.timestamp());
    }
  }

  private void take(Event event, long timestamp) {
    String campaign = campaignOf.get(event.adId());
    if (campaign == null) {
      waiting.put(event.offset(), event);
      queueOf(event.adId()).add(event.offset());
    } else {
      forward(campaign, event, timestamp);
    }
  }

  private void take(Ad ad, long timestamp) {
    campaignOf.put(ad.adId(), ad.campaignId());
    ads.put(ad.adId(), ad.campaignId());
    List<Long> offsets = waitingFor.remove(ad.adId());
    for (long offset : offsets == null ? List.<Long>of() : offsets) {
      forward(ad.campaignId(), waiting.delete(offset), timestamp);
    }
  }

  private void forward(String campaign, Event event, long timestamp) {
    AdView view = new AdView(event.partition(), event.eventTime());
    Window window = Window.of(campaign, event.eventTime());
    context().forward(new Record<>(window, view, timestamp));
  }

  private List<Long> queueOf(String ad) {
    return waitingFor.computeIfAbsent(ad, key -> new ArrayList<>());
  }

  record Supplier(TopologyContext topology)
      implements ProcessorSupplier<String, Object, Window, AdView> {
    @Override
    public Processor<String, Object, Window, AdView> get() {
      return new CampaignOf();
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(
          topology.store(ADS, Serdes.String(), Serdes.String()),
          topology.store(WAITING, Serdes.Long(), Event.SERDE));
    }
  }
}
