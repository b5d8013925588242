package racetrack.spark;

import static java.util.Comparator.comparing;
import static java.util.Comparator.comparingLong;
import static java.util.Comparator.naturalOrder;
import static java.util.Comparator.nullsFirst;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Adds the two top lists to the messages of the other views.
 *
 * <p>It keeps the row of every item, and each micro-batch computes the lists from all of them: if
 * the rate of an item in a list falls, any other item may take its place.
 */
final class TopItems extends Keyed<Boolean> {
  private static final long serialVersionUID = 1;
  private static final int LENGTH = 20;
  private static final StructType ITEM =
      StructType.fromDDL("pageviews BIGINT, conversion_rate DOUBLE, value STRING");
  private static final StructType MESSAGE =
      StructType.fromDDL("topic STRING, key STRING, value STRING");

  private transient MapState<String, Row> items;
  /** View → key → value of the rows that it has now. */
  private transient Map<String, MapState<String, String>> shown;

  private record Item(String key, Row row) {
    /** View → the order of its items. Equal ones are in the order of their ids. */
    private static final Map<String, Comparator<Item>> ORDERS =
        Map.of(
            "top_viewed_items", comparingLong(Item::pageviews).reversed(),
            "top_converting_items",
                comparing(Item::conversionRate, nullsFirst(naturalOrder())).reversed());

    long id() {
      return Long.parseLong(key);
    }

    long pageviews() {
      return row.getAs("pageviews");
    }

    Double conversionRate() {
      return row.getAs("conversion_rate");
    }
  }

  /**
   * `messages` have the columns `topic`, `key`, `value` and `is_item`; those of items also have
   * `pageviews` and `conversion_rate`.
   */
  static Dataset<Row> addedTo(Dataset<Row> messages) {
    return new TopItems()
        .madeOf(messages, "is_item", Encoders.BOOLEAN(), TimeMode.None(), MESSAGE);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    items = map("items", Encoders.STRING(), Encoders.row(ITEM));
    shown = new HashMap<>();
    for (String view : Item.ORDERS.keySet()) {
      shown.put(view, map(view, Encoders.STRING(), Encoders.STRING()));
    }
  }

  @Override
  public Iterator<Row> handleInputRows(Boolean areItems, Iterator<Row> rows, TimerValues time) {
    List<Row> messages = new ArrayList<>();
    while (rows.hasNext()) {
      Row row = rows.next();
      messages.add(RowFactory.create(row.getAs("topic"), row.getAs("key"), row.getAs("value")));
      if (areItems) {
        keep(row);
      }
    }
    if (areItems) {
      List<Item> all = new ArrayList<>();
      CollectionConverters.asJava(items.iterator())
          .forEachRemaining(each -> all.add(new Item(each._1(), each._2())));
      Item.ORDERS.forEach((view, order) -> show(view, first(all, order), messages));
    }
    return CollectionConverters.asScala(messages.iterator());
  }

  private void keep(Row row) {
    String value = row.getAs("value");
    if (value == null) {
      items.removeKey(row.getAs("key"));
    } else {
      items.updateValue(
          row.getAs("key"),
          RowFactory.create(row.getAs("pageviews"), row.getAs("conversion_rate"), value));
    }
  }

  private static Map<String, String> first(List<Item> all, Comparator<Item> order) {
    Map<String, String> found = new HashMap<>();
    all.stream()
        .sorted(order.thenComparing(Item::id))
        .limit(LENGTH)
        .forEach(item -> found.put(item.key(), item.row().getAs("value")));
    return found;
  }

  /** Adds messages for the rows of a view that are new, changed or gone. */
  private void show(String view, Map<String, String> rows, List<Row> messages) {
    MapState<String, String> before = shown.get(view);
    Set<String> gone = new HashSet<>();
    CollectionConverters.asJava(before.keys()).forEachRemaining(gone::add);
    gone.removeAll(rows.keySet());
    for (String key : gone) {
      messages.add(RowFactory.create(Kafka.topicOf(view), key, null));
      before.removeKey(key);
    }
    rows.forEach(
        (key, value) -> {
          if (!value.equals(before.getValue(key))) {
            messages.add(RowFactory.create(Kafka.topicOf(view), key, value));
            before.updateValue(key, value);
          }
        });
  }
}
