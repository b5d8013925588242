package racetrack.spark;

import static java.util.Comparator.comparing;
import static java.util.Comparator.comparingLong;
import static java.util.Comparator.naturalOrder;
import static java.util.Comparator.nullsFirst;
import static java.util.stream.Collectors.toMap;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Joins the totals of items with the items, and adds the joined rows and the two top lists to the
 * messages of the other views.
 *
 * <p>It keeps the row of every item, and each micro-batch computes the lists from all of them: if
 * the rate of an item in a list falls, any other item may take its place.
 */
final class ItemViews extends Keyed<Boolean> {
  private static final long serialVersionUID = 1;
  private static final int LENGTH = 20;
  private static final String SUMMARY = "item_summary";
  private static final StructType TOTALS =
      StructType.fromDDL(
          "revenue DECIMAL(38, 2), orders BIGINT, items_sold BIGINT, pageviews BIGINT,"
              + " conversion_rate DOUBLE");
  private static final StructType ITEM = StructType.fromDDL("name STRING, category STRING");
  private static final StructType KEPT =
      new StructType().add("item", ITEM).add("totals", TOTALS);
  private static final StructType SUMMARY_ROW =
      StructType.fromDDL("item_id BIGINT, " + ITEM.toDDL() + ", " + TOTALS.toDDL());
  private static final StructType MESSAGE =
      StructType.fromDDL("topic STRING, key STRING, value STRING").add("row", SUMMARY_ROW);

  private transient MapState<Long, Row> items;
  /** View → item → the row that it has now. */
  private transient Map<String, MapState<Long, Row>> shown;

  /** The totals of an item, and its row in the table, null if it has none. */
  private record Item(long id, Row item, Row totals) {
    private static final Row NOTHING_SOLD =
        new GenericRowWithSchema(
            new Object[] {BigDecimal.valueOf(0, 2), 0L, 0L, 0L, null}, TOTALS);
    /** View → the order of its items. Equal ones are in the order of their ids. */
    private static final Map<String, Comparator<Item>> ORDERS =
        Map.of(
            "top_viewed_items", comparingLong(Item::pageviews).reversed(),
            "top_converting_items",
                comparing(Item::conversionRate, nullsFirst(naturalOrder())).reversed());

    static Item unknown(long id) {
      return new Item(id, null, NOTHING_SOLD);
    }

    boolean isListed() {
      return item != null;
    }

    long pageviews() {
      return totals.getAs("pageviews");
    }

    Double conversionRate() {
      return totals.getAs("conversion_rate");
    }

    Row kept() {
      return RowFactory.create(item, totals);
    }

    /** The row of the item in `item_summary`; null if it has none. */
    Row summary() {
      if (!isListed()) {
        return null;
      }
      return RowFactory.create(
          id, item.getAs("name"), item.getAs("category"), totals.getAs("revenue"),
          totals.getAs("orders"), totals.getAs("items_sold"), pageviews(), conversionRate());
    }
  }

  /**
   * `messages` have the columns `topic`, `key`, `value` and `is_item`. Those of items need none of
   * the first three, but have `item_id` and either `totals`, or `item` (null: deleted) and
   * `item_at`, the offset of this change.
   */
  static Dataset<Row> addedTo(Dataset<Row> messages) {
    return new ItemViews()
        .madeOf(messages, "is_item", Encoders.BOOLEAN(), TimeMode.None(), MESSAGE);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    items = map("items", Encoders.LONG(), Encoders.row(KEPT));
    shown = new HashMap<>();
    for (String view : Item.ORDERS.keySet()) {
      shown.put(view, map(view, Encoders.LONG(), Encoders.row(SUMMARY_ROW)));
    }
  }

  @Override
  public Iterator<Row> handleInputRows(Boolean areItems, Iterator<Row> rows, TimerValues time) {
    List<Row> messages = new ArrayList<>();
    if (areItems) {
      change(rows, messages);
    } else {
      CollectionConverters.asJava(rows)
          .forEachRemaining(
              row ->
                  messages.add(
                      RowFactory.create(
                          row.getAs("topic"), row.getAs("key"), row.getAs("value"), null)));
    }
    return CollectionConverters.asScala(messages.iterator());
  }

  private void change(Iterator<Row> rows, List<Row> messages) {
    Map<Long, Item> all = new HashMap<>();
    CollectionConverters.asJava(items.iterator())
        .forEachRemaining(
            each ->
                all.put(
                    each._1(),
                    new Item(each._1(), each._2().getAs("item"), each._2().getAs("totals"))));
    Map<Long, Long> changedAt = new HashMap<>();
    Set<Long> changed = new TreeSet<>();
    while (rows.hasNext()) {
      Row row = rows.next();
      long id = row.getAs("item_id");
      Item before = all.getOrDefault(id, Item.unknown(id));
      Long at = row.getAs("item_at");
      if (at == null) {
        all.put(id, new Item(id, before.item(), row.getAs("totals")));
      } else if (at > changedAt.getOrDefault(id, -1L)) {
        changedAt.put(id, at);
        all.put(id, new Item(id, row.getAs("item"), before.totals()));
      }
      changed.add(id);
    }
    for (long id : changed) {
      items.updateValue(id, all.get(id).kept());
      messages.add(message(SUMMARY, id, all.get(id).summary()));
    }
    Item.ORDERS.forEach((view, order) -> show(view, first(all.values(), order), messages));
  }

  private static Map<Long, Row> first(Collection<Item> all, Comparator<Item> order) {
    return all.stream()
        .filter(Item::isListed)
        .sorted(order.thenComparing(Item::id))
        .limit(LENGTH)
        .collect(toMap(Item::id, Item::summary));
  }

  /** Adds messages for the rows of a view that are new, changed or gone. */
  private void show(String view, Map<Long, Row> rows, List<Row> messages) {
    MapState<Long, Row> before = shown.get(view);
    Set<Long> gone = new HashSet<>();
    CollectionConverters.asJava(before.keys()).forEachRemaining(gone::add);
    gone.removeAll(rows.keySet());
    for (long id : gone) {
      messages.add(message(view, id, null));
      before.removeKey(id);
    }
    rows.forEach(
        (id, row) -> {
          if (!row.equals(before.getValue(id))) {
            messages.add(message(view, id, row));
            before.updateValue(id, row);
          }
        });
  }

  /** A message whose value is `row`; null deletes the row. */
  private static Row message(String view, long item, Row row) {
    return RowFactory.create(Kafka.topicOf(view), Long.toString(item), null, row);
  }
}
