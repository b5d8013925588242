package racetrack.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;

/**
 * Passes messages on, and adds those of the two top lists: the first twenty rows of `item_summary`
 * in two orders. Keyed by topic, so one task sees all changes of `item_summary`. It sorts all items
 * once in each micro-batch in which one of them has changed.
 *
 * <p>The rows do not contain their place in the list. Otherwise, all rows between the old and the
 * new place of an item would change when the item moves.
 */
final class TopItems extends Keyed<String> {
  private static final long serialVersionUID = 1;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int LIMIT = 20;
  private static final String SUMMARIES = Kafka.topicOf("item_summary");
  private static final Map<String, Comparator<Item>> ORDERS =
      Map.of(
          "top_viewed_items",
          Comparator.comparingLong(Item::pageviews).reversed().thenComparing(Item::id),
          "top_converting_items",
          Comparator.comparing(
                  Item::conversionRate, Comparator.nullsFirst(Comparator.<Double>naturalOrder()))
              .reversed()
              .thenComparing(Item::id));

  /** An item with the message of its row. */
  private record Item(long id, long pageviews, Double conversionRate, String message) {}

  /** Item → its values for the two orders, and the message of its row. */
  private transient MapState<Long, Row> items;
  /** View → item → the message written last. */
  private transient Map<String, MapState<Long, String>> shown;

  static Dataset<Row> of(Dataset<Row> messages) {
    return new TopItems().over(messages, "topic", Encoders.STRING());
  }

  @Override
  String columns() {
    return "topic STRING, key STRING, value STRING";
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    items =
        map(
            "items", Encoders.LONG(),
            row("pageviews BIGINT, conversion_rate DOUBLE, message STRING"));
    shown = new HashMap<>();
    for (String view : ORDERS.keySet()) {
      shown.put(view, map(view, Encoders.LONG(), Encoders.STRING()));
    }
  }

  @Override
  Collection<Row> take(String topic, Iterator<Row> rows, long nowMs) {
    List<Row> messages = new ArrayList<>();
    rows.forEachRemaining(messages::add);
    if (topic.equals(SUMMARIES)) {
      messages.forEach(this::keep);
      List<Item> all = new ArrayList<>();
      forEach(items, (id, row) -> all.add(new Item(id, row.getLong(0), row.getAs(1), row.getAs(2))));
      ORDERS.forEach((view, order) -> messages.addAll(changes(view, order, all)));
    }
    return messages;
  }

  private void keep(Row message) {
    long id = Long.parseLong(message.getAs("key"));
    String value = message.getAs("value");
    if (value == null) {
      items.removeKey(id);
      return;
    }
    try {
      JsonNode row = JSON.readTree(value);
      JsonNode rate = row.get("conversion_rate");
      Double known = rate.isNull() ? null : rate.asDouble();
      items.updateValue(id, RowFactory.create(row.get("pageviews").asLong(), known, value));
    } catch (JsonProcessingException error) {
      throw new IllegalStateException(value, error);
    }
  }

  private List<Row> changes(String view, Comparator<Item> order, List<Item> all) {
    Map<Long, String> now = new HashMap<>();
    all.stream().sorted(order).limit(LIMIT).forEach(item -> now.put(item.id, item.message));
    Map<Long, String> before = new HashMap<>();
    forEach(shown.get(view), before::put);
    List<Row> changes = new ArrayList<>();
    for (Long id : before.keySet()) {
      if (!now.containsKey(id)) {
        shown.get(view).removeKey(id);
        changes.add(message(view, id, null));
      }
    }
    now.forEach(
        (id, row) -> {
          if (!row.equals(before.get(id))) {
            shown.get(view).updateValue(id, row);
            changes.add(message(view, id, row));
          }
        });
    return changes;
  }

  private static Row message(String view, long id, String value) {
    return RowFactory.create(Kafka.topicOf(view), Long.toString(id), value);
  }
}
