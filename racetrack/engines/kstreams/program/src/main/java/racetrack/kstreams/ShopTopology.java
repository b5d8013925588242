package racetrack.kstreams;

import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import racetrack.kstreams.Pageview.View;
import racetrack.kstreams.Shop.Email;
import racetrack.kstreams.Shop.FlaggedProfile;
import racetrack.kstreams.Shop.HighValueUser;
import racetrack.kstreams.Shop.Item;
import racetrack.kstreams.Shop.ItemSummary;
import racetrack.kstreams.Shop.ItemViews;
import racetrack.kstreams.Shop.Purchase;
import racetrack.kstreams.Shop.Sales;
import racetrack.kstreams.Shop.Sold;
import racetrack.kstreams.Shop.User;
import racetrack.kstreams.Shop.Worth;

/**
 * The views of the workload `shop` on Kafka Streams. `scripts/demo.py` defines each view exactly;
 * comments here explain only where Kafka Streams needs a different formulation.
 *
 * <p>Kafka Streams has no server that answers queries: its users read the topics that it writes. So
 * the changes of every view are written to the topic `kstreams.<view>`: a message for each changed
 * row, whose key identifies the row, and a message without a value for each deleted row. The last
 * messages of all keys together are the view's rows. A topic does not keep rows in order, so
 * readers of an ordered view sort it themselves.
 *
 * <p>If you change this file, it is compiled at the next start.
 */
final class ShopTopology {
  static final String PAGEVIEWS = "pageviews";
  private static final String FLAGS = "dd_flagged_profiles";
  private static final String SINK = "high_value_users_sink";
  static final List<String> INPUTS =
      List.of(PAGEVIEWS, FLAGS, "mysql.shop.users", "mysql.shop.items", "mysql.shop.purchases");

  private static final Pattern USER_ID = Pattern.compile("\"?[0-9]{1,18}\"?");
  private static final Serde<Long> ID = Serdes.Long();

  private final TopologyContext topology;

  private ShopTopology(TopologyContext topology) {
    this.topology = topology;
  }

  static TopologyContext build(Settings settings, int partitions) {
    TopologyContext topology = new TopologyContext(settings, partitions);
    new ShopTopology(topology).connect();
    return topology;
  }

  private void connect() {
    KStream<Long, User> users = table("users", User.class);
    KStream<Long, Item> items = table("items", Item.class);
    KTable<Long, Purchase> purchases =
        table("purchases", Purchase.class)
            .toTable(topology.uncachedTable("purchases-by-id", ID, Json.of(Purchase.class)));

    KStream<Integer, Pageview> pageviews = pageviews();
    KStream<Long, View> products = byTarget(pageviews, Pageview.PRODUCTS);
    KStream<Long, View> profiles = byTarget(pageviews, Pageview.PROFILES);
    summarizeItems(items, purchases, products);
    showProfileViews(profiles, users);
    showFlagged(pageviews);
    showHighValueUsers(purchases, users);

    // These calls come last, because they count events that have passed the processors above.
    topology.countProgress("products", products);
    topology.countProgress("profiles", profiles);
    topology.countProgress(
        "other", pageviews.filter((key, pageview) -> pageview.pageviewType() == null));
    topology.writeProgress("pageviews_progress", "pageviews_summary");
  }

  /** The changes of one of MySQL's tables. The table is also written, unchanged, as a view. */
  private <V> KStream<Long, V> table(String name, Class<V> row) {
    KStream<Long, V> changes =
        topology.changes("mysql.shop." + name, id -> ((Number) id).longValue(), row);
    topology.write(changes, name);
    return changes;
  }

  /** The pageviews. Each contains its position in the topic, which only a processor can read. */
  private KStream<Integer, Pageview> pageviews() {
    return topology.events(PAGEVIEWS, Pageview.Message.SERDE).processValues(Locate::new);
  }

  private static final class Locate
      extends ContextualFixedKeyProcessor<Integer, Pageview.Message, Pageview> {
    @Override
    public void process(FixedKeyRecord<Integer, Pageview.Message> record) {
      var place = context().recordMetadata().orElseThrow();
      Pageview located = Pageview.of(record.value(), place.partition(), place.offset());
      context().forward(record.withValue(located));
    }
  }

  /** The pageviews of products, or of profiles, keyed by their target. */
  private KStream<Long, View> byTarget(KStream<Integer, Pageview> pageviews, String type) {
    return pageviews
        .filter((key, pageview) -> pageview.isOf(type))
        .map((key, pageview) -> KeyValue.pair(pageview.targetId(), pageview.view()))
        .repartition(topology.byKey(type, ID, View.SERDE));
  }

  private void summarizeItems(
      KStream<Long, Item> items, KTable<Long, Purchase> purchases, KStream<Long, View> products) {
    KTable<Long, Sold> sold =
        purchases
            .groupBy(
                (id, purchase) -> KeyValue.pair(Shop.keyOf(purchase.itemId()), purchase),
                Grouped.with("purchases-by-item", ID, Json.of(Purchase.class)))
            .aggregate(
                () -> Sold.NONE,
                Sold::plus,
                Sold::minus,
                topology.table("sales", ID, Sold.SERDE));
    topology.write(
        sold.toStream().mapValues((key, all) -> all == null ? null : Sales.of(key, all)),
        "purchases_by_item");

    KTable<Long, Long> pageviews =
        products
            .groupByKey(Grouped.with(ID, View.SERDE))
            .count(topology.table("item-counts", ID, Serdes.Long()));
    topology.write(pageviews.toStream().mapValues(ItemViews::new), "pageviews_by_item");

    KTable<Long, ItemSummary> summaries =
        items
            .mapValues(ItemSummary::of)
            .repartition(topology.byKey("items", ID, ItemSummary.SERDE))
            .toTable(topology.table("items-by-id", ID, ItemSummary.SERDE))
            .<Sold, ItemSummary>leftJoin(sold, ItemSummary::with)
            .<Long, ItemSummary>leftJoin(pageviews, ItemSummary::with);
    topology.write(summaries.toStream(), "item_summary");
    showBest(summaries);
  }

  private void showBest(KTable<Long, ItemSummary> summaries) {
    var orders =
        Map.of(
            "top_viewed_items", BestItems.BY_PAGEVIEWS,
            "top_converting_items", BestItems.BY_CONVERSION_RATE);
    KStream<Object, Object> best =
        summaries
            .toStream()
            .repartition(topology.toOne("summaries", ID, ItemSummary.SERDE))
            .process(new BestItems.Supplier(topology, orders));
    orders.keySet().forEach(view -> topology.write(best, view));
  }

  private void showProfileViews(KStream<Long, View> profiles, KStream<Long, User> users) {
    KStream<Long, Object> emails =
        users
            .mapValues(Email::of)
            .repartition(topology.toAll("emails", ID, Email.SERDE))
            .mapValues(email -> email);
    String plain = "profile_views";
    String enriched = "profile_views_enriched";
    KStream<Object, Object> last =
        profiles
            .<Object>mapValues(view -> view)
            .merge(emails)
            .process(new LastViews.Supplier(topology, plain, enriched));
    topology.write(last, plain);
    topology.write(last, enriched);
    topology.write(
        profiles.process(RecentViews.supplier(topology)), "profile_views_per_minute_last_10");
  }

  /**
   * Writes the views of flagged users. People send the messages by hand, so messages that are not
   * numbers are ignored.
   */
  private void showFlagged(KStream<Integer, Pageview> pageviews) {
    KStream<Long, Long> flags =
        topology.read(FLAGS, Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .filter((key, text) -> text != null && USER_ID.matcher(text).matches())
            .map((key, text) -> userOf(text));
    topology.write(flags.mapValues(FlaggedProfile::new), "dd_flagged_profiles");
    KStream<Long, Object> everywhere =
        flags.repartition(topology.toAll("flags", ID, ID)).mapValues(FlaggedProfile::new);
    KStream<?, ?> found =
        pageviews
            .<Long, Object>map((key, pageview) -> KeyValue.pair(pageview.userId(), pageview))
            .merge(everywhere)
            .process(Flagged.supplier(topology));
    topology.write(found, "dd_flagged_profile_view");
  }

  private static KeyValue<Long, Long> userOf(String text) {
    long user = Long.parseLong(text.replace("\"", ""));
    return KeyValue.pair(user, user);
  }

  private void showHighValueUsers(KTable<Long, Purchase> purchases, KStream<Long, User> users) {
    KTable<Long, HighValueUser> best =
        purchases
            .groupBy(
                (id, purchase) -> KeyValue.pair(Shop.keyOf(purchase.userId()), purchase),
                Grouped.with("purchases-by-user", ID, Json.of(Purchase.class)))
            .aggregate(
                () -> Worth.NONE,
                Worth::plus,
                Worth::minus,
                topology.table("worth", ID, Json.of(Worth.class)))
            .filter((user, worth) -> worth.isHigh())
            .leftJoin(
                users.toTable(topology.uncachedTable("users-by-id", ID, Json.of(User.class))),
                HighValueUser::of);
    topology.write(best.toStream(), "high_value_users");
    topology.writeTo(best.toStream(), SINK, SINK);
    // Reads the same topic, because the view `hvu_test` contains its rows.
    KTable<Long, HighValueUser> sent =
        topology.builder.table(
            topology.settings.cluster().topic(SINK),
            Consumed.with(Json.of(Long.class), Json.of(HighValueUser.class)),
            topology.table("sent", ID, Json.of(HighValueUser.class)));
    topology.write(sent.toStream(), "hvu_test");
  }
}
