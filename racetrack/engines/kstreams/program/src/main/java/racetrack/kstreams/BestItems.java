package racetrack.kstreams;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import racetrack.kstreams.Shop.ItemSummary;

/**
 * Maintains the top lists: sorts all items by each of several orders, and writes the first twenty
 * of each order to a view.
 *
 * <p>The rows do not contain their place in the list. Otherwise, all rows between the old and the
 * new place of an item would change when the item moves.
 */
final class BestItems extends ContextualProcessor<Long, ItemSummary, Object, Object> {
  static final Comparator<ItemSummary> BY_PAGEVIEWS =
      Comparator.comparingLong(ItemSummary::pageviews)
          .reversed()
          .thenComparing(ItemSummary::itemId);
  static final Comparator<ItemSummary> BY_CONVERSION_RATE =
      Comparator.comparing(
              ItemSummary::conversionRate, Comparator.nullsFirst(Comparator.<Double>naturalOrder()))
          .reversed()
          .thenComparing(ItemSummary::itemId);
  private static final int LIMIT = 20;
  private static final String STORE = "items-in-order";

  /** The items in one order, and the rows of its list that were written last. */
  static final class Ranking {
    private final TreeSet<ItemSummary> order;
    private Map<Long, ItemSummary> shown = new HashMap<>();
    private ItemSummary last;
    private boolean isTouched;

    Ranking(Comparator<ItemSummary> by) {
      order = new TreeSet<>(by);
    }

    void replace(ItemSummary before, ItemSummary now) {
      if (before != null) {
        order.remove(before);
        isTouched |= shown.containsKey(before.itemId());
      }
      if (now != null) {
        order.add(now);
        isTouched |= shown.size() < LIMIT || order.comparator().compare(now, last) < 0;
      }
    }

    /** Changes of the list since the last call. */
    List<KeyValue<Long, ItemSummary>> changes() {
      if (!isTouched) {
        return List.of();
      }
      Map<Long, ItemSummary> now = new LinkedHashMap<>();
      var next = order.iterator();
      while (now.size() < LIMIT && next.hasNext()) {
        last = next.next();
        now.put(last.itemId(), last);
      }
      List<KeyValue<Long, ItemSummary>> found = new ArrayList<>();
      // Delete rows that leave the list before adding others, so that readers never see more than
      // twenty.
      for (Long item : shown.keySet()) {
        if (!now.containsKey(item)) {
          found.add(KeyValue.pair(item, null));
        }
      }
      for (ItemSummary row : now.values()) {
        if (!row.equals(shown.get(row.itemId()))) {
          found.add(KeyValue.pair(row.itemId(), row));
        }
      }
      shown = now;
      isTouched = false;
      return found;
    }
  }

  private final Supplier of;
  private final Map<String, Ranking> rankings = new HashMap<>();
  /** The items of the store, which would have to decode them. */
  private final Map<Long, ItemSummary> items = new HashMap<>();
  private KeyValueStore<Long, ItemSummary> store;

  private BestItems(Supplier of) {
    this.of = of;
  }

  @Override
  public void init(ProcessorContext<Object, Object> context) {
    super.init(context);
    of.orders.forEach((view, order) -> rankings.put(view, new Ranking(order)));
    store = context.getStateStore(STORE);
    try (var rows = store.all()) {
      rows.forEachRemaining(row -> items.put(row.key, row.value));
    }
    items.values().forEach(item -> rankings.values().forEach(r -> r.replace(null, item)));
    rankings.values().forEach(Ranking::changes);
  }

  @Override
  public void process(Record<Long, ItemSummary> record) {
    ItemSummary now = record.value();
    store.put(record.key(), now);
    ItemSummary before = now == null ? items.remove(record.key()) : items.put(record.key(), now);
    rankings.forEach(
        (view, ranking) -> {
          ranking.replace(before, now);
          for (KeyValue<Long, ItemSummary> each : ranking.changes()) {
            context().forward(
                new Record<>(each.key, each.value, record.timestamp()), view);
          }
        });
  }

  /** `orders`: view → the order of its list. */
  record Supplier(TopologyContext topology, Map<String, Comparator<ItemSummary>> orders)
      implements ProcessorSupplier<Long, ItemSummary, Object, Object> {
    @Override
    public Processor<Long, ItemSummary, Object, Object> get() {
      return new BestItems(this);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(topology.store(STORE, Serdes.Long(), ItemSummary.SERDE));
    }
  }
}
