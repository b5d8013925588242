package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.avro.generic.GenericRecord;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The views of the shop, after what is changed and what is taken back. */
class ShopViewsTest {
  private World world;

  @BeforeEach
  void open() throws Exception {
    world = new World();
    List.of("pageviews", "users", "items", "purchases", "flags").forEach(world::topic);
  }

  @AfterEach
  void close() throws Exception {
    world.close();
  }

  @Test
  void anItemIsSummarizedWhateverCameFirstAndTakesBackWhatChanges() throws Exception {
    items();
    purchase(null, purchased(1, 7, 5, 2, "9999999999.99"));
    pageview(0, 7, "/products/5", 1);
    world.settle();
    item(null, Registry.row(Registry.ITEM, 5L, "a", null));
    item(null, Registry.row(Registry.ITEM, 6L, "b", "c"));
    purchase(null, purchased(2, 7, 5, 3, "0.02"));
    pageview(1, 8, "/products/5", 3);
    pageview(1, 8, "/profiles/5", 2);
    world.settle();
    JsonNode row = world.rows("item_summary").get("5");
    assertEquals("10000000000.01", row.get("revenue").decimalValue().toPlainString());
    assertEquals(List.of(2L, 5L, 2L), numbers(row, "orders", "items_sold", "pageviews"));
    assertEquals(1.0, row.get("conversion_rate").asDouble());
    assertTrue(row.get("category").isNull());
    JsonNode other = world.rows("item_summary").get("6");
    assertEquals(List.of(0L, 0L, 0L), numbers(other, "orders", "items_sold", "pageviews"));
    assertTrue(other.get("conversion_rate").isNull());
    assertEquals(Set.of("5"), world.rows("purchases_by_item").keySet());
    assertEquals(Set.of("5"), world.rows("pageviews_by_item").keySet());
    assertEquals(3, world.rows("pageviews_summary").get("\"all\"").get("total").asLong());
    JsonNode partition = world.rows("pageviews_progress").get("1");
    assertEquals(World.NOW_MS + 3, partition.get("max_received_at").asLong());
    assertEquals(2, partition.get("total").asLong());

    purchase(purchased(2, 7, 5, 3, "0.02"), purchased(2, 7, 6, 3, "0.02"));
    purchase(purchased(1, 7, 5, 2, "9999999999.99"), null);
    world.settle();
    assertEquals(Set.of("6"), world.rows("purchases_by_item").keySet());
    assertEquals(List.of(0L), numbers(world.rows("item_summary").get("5"), "orders"));
    assertEquals(List.of(3L), numbers(world.rows("item_summary").get("6"), "items_sold"));
  }

  @Test
  void usersOfHighValueComeAndGoAndShowTheEmailOfNow() throws Exception {
    world.keep("high-value-users", ShopViews.HIGH_VALUE_USERS);
    user(3, "old@a");
    purchase(null, purchased(1, 3, 5, 2, "5000.00"));
    purchase(null, purchased(2, 4, 5, 3, "5000.00"));
    world.settle();
    assertEquals(Set.of("4"), world.rows("high_value_users").keySet());
    purchase(null, purchased(3, 3, 5, 1, "0.01"));
    user(3, "new@a");
    world.settle();
    JsonNode row = world.rows("high_value_users").get("3");
    assertEquals("new@a", row.get("email").asText());
    assertEquals("10000.01", row.get("lifetime_value").decimalValue().toPlainString());
    assertEquals(2, row.get("purchases").asLong());
    purchase(purchased(2, 4, 5, 3, "5000.00"), null);
    world.settle();
    assertEquals(Set.of("3"), world.rows("high_value_users").keySet());
  }

  @Test
  void pageviewsOfFlaggedUsersAreFoundWhicheverCameFirst() throws Exception {
    world.keep("flagged", ShopViews.FLAGGED_PROFILES);
    world.keep("flagged-views", ShopViews.FLAGGED_VIEWS, "append");
    pageview(0, 7, "/products/5", 1);
    pageview(0, 8, "/", 1);
    world.settle();
    world.send("flags", 0, "\"7\"");
    world.send("flags", 0, "seven");
    world.settle();
    pageview(1, 7, "/", 2);
    world.settle();
    assertEquals(Set.of("7"), world.rows("dd_flagged_profiles").keySet());
    var found = world.rows("dd_flagged_profile_view").values();
    assertEquals(List.of(7L, 7L), found.stream().map(row -> row.get("user_id").asLong()).toList());
    assertEquals(
        Set.of("5", "null"),
        Set.copyOf(found.stream().map(row -> row.get("target_id").asText()).toList()));
  }

  @Test
  void theTopListsHoldTheFirstTwentyItemsNow() throws Exception {
    items();
    for (long id = 1; id <= 22; id++) {
      item(null, Registry.row(Registry.ITEM, id, "a", null));
    }
    pageview(0, 7, "/products/22", 1);
    pageview(0, 7, "/products/21", 1);
    purchase(null, purchased(1, 7, 21, 1, "1.00"));
    world.settle();
    // Of two equal items, the one with the lower id comes first.
    assertEquals(keys(world.rows("item_summary"), 1, 18, 21, 22), world.rows("top_viewed_items"));
    assertEquals(
        keys(world.rows("item_summary"), 1, 18, 21, 22), world.rows("top_converting_items"));
    pageview(0, 7, "/products/20", 1);
    purchase(purchased(1, 7, 21, 1, "1.00"), purchased(1, 7, 20, 1, "2.00"));
    item(Registry.row(Registry.ITEM, 22L, "a", null), null);
    world.settle();
    assertEquals(keys(world.rows("item_summary"), 1, 18, 20, 21), world.rows("top_viewed_items"));
    assertEquals(
        keys(world.rows("item_summary"), 1, 18, 20, 21), world.rows("top_converting_items"));
    assertEquals(1, world.rows("top_viewed_items").get("20").get("orders").asLong());
  }

  @Test
  void aProfileHasItsLastTenViewsWithTheEmailsOfNow() throws Exception {
    world.keep("profiles", ShopViews.profiles(world.spark), "update");
    user(5, "owner@a");
    for (int n = 0; n < 11; n++) {
      pageview(n % 2, 7 + n % 2, "/profiles/5", n);
    }
    pageview(0, 5, "/profiles/8", 1);
    world.settle();
    assertEquals(Set.of(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L), times("profile_views", 5));
    assertEquals(world.rows("profile_views").keySet(), world.rows("profile_views_enriched").keySet());
    assertEquals(Set.of("owner@a null"), emails(5));
    assertEquals(Set.of("null owner@a"), emails(8));
    user(7, "seven@a");
    pageview(1, 9, "/profiles/5", 20);
    pageview(1, 9, "/profiles/5", 0);
    world.settle();
    assertEquals(Set.of(2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L, 20L), times("profile_views", 5));
    assertEquals(Set.of("owner@a null", "owner@a seven@a"), emails(5));
    user(5, "new@a");
    world.change("users", Registry.USER, Registry.row(Registry.USER, 7L, "seven@a"), null);
    world.settle();
    assertEquals(Set.of("new@a null"), emails(5));
    assertEquals(Set.of("null new@a"), emails(8));
  }

  @Test
  void viewsLeaveTheirMinuteWhenTheyAreTenMinutesOld() throws Exception {
    world.keep("recent-views", ShopViews.recentViews(world.spark), "update");
    long now = System.currentTimeMillis();
    pageview(0, 7, "/profiles/5", now - World.NOW_MS);
    pageview(0, 7, "/profiles/5", now - World.NOW_MS - 700_000);
    world.waitUntil(() -> recent().equals(Map.of(minuteKey(5, now), 1L)));
    long soonGone = System.currentTimeMillis() - 600_000 + 15_000;
    pageview(0, 7, "/profiles/5", now - World.NOW_MS);
    pageview(0, 7, "/profiles/5", soonGone - World.NOW_MS);
    world.waitUntil(() -> recent().equals(Map.of(minuteKey(5, soonGone), 1L, minuteKey(5, now), 2L)));
    world.waitUntil(() -> recent().equals(Map.of(minuteKey(5, now), 2L)));
  }

  @Test
  void rowsOfNullOnlyAreRowsAndAddNothing() throws Exception {
    items();
    world.keep("high-value-users", ShopViews.HIGH_VALUE_USERS);
    GenericRecord empty = Registry.row(Registry.PURCHASE, 1L, null, null, null, null);
    purchase(null, empty);
    item(null, Registry.row(Registry.ITEM, 5L, null, null));
    world.settle();
    JsonNode sold = world.rows("purchases_by_item").get("null");
    assertEquals(1, sold.get("orders").asLong());
    for (String column : List.of("item_id", "revenue", "items_sold")) {
      assertTrue(sold.get(column).isNull(), column);
    }
    JsonNode summary = world.rows("item_summary").get("5");
    assertEquals(List.of(0L, 0L, 0L), numbers(summary, "revenue", "orders", "items_sold"));
    GenericRecord priced =
        Registry.row(Registry.PURCHASE, 2L, null, null, 4_294_967_295L, "9999999999.99");
    purchase(null, priced);
    world.settle();
    JsonNode best = world.rows("high_value_users").get("null");
    assertTrue(best.get("id").isNull());
    assertEquals(
        new BigDecimal("9999999999.99").multiply(BigDecimal.valueOf(4_294_967_295L)),
        best.get("lifetime_value").decimalValue());
    purchase(priced, null);
    purchase(empty, null);
    world.settle();
    assertEquals(Set.of(), world.rows("purchases_by_item").keySet());
    assertEquals(Set.of(), world.rows("high_value_users").keySet());
  }

  @Test
  void aMessageThatIsNoPageviewEndsTheQueryWhichNamesItsPlace() throws Exception {
    int wrong = 0;
    for (String text :
        Arrays.asList("hello", null, "{\"user_id\": 1}", "{\"user_id\": \"a\", \"url\": \"/\"}")) {
      StreamingQuery query =
          world.keep("wrong " + wrong++, ShopViews.items(world.spark), "update");
      world.send("pageviews", 3, text);
      var error =
          assertThrows(StreamingQueryException.class, () -> query.awaitTermination(60_000));
      assertTrue(
          error.getMessage().contains("topic=pageviews, partition=3, offset="), error::getMessage);
    }
  }

  @Test
  void validMessagesAreReadAsByAllEngines() throws Exception {
    List<String[]> lines =
        Files.readAllLines(Path.of(System.getenv("JSON_MESSAGES"))).stream()
            .map(line -> line.split(" ", -1))
            .toList();
    List<Row> rows = world.pageviews(lines.stream().map(line -> decoded(line[0])).toList());
    for (int n = 0; n < lines.size(); n++) {
      String text = new String(decoded(lines.get(n)[2]), StandardCharsets.UTF_8);
      assertEquals(text, rows.get(n).getAs("channel"));
      assertEquals(Long.parseLong(lines.get(n)[3]), rows.get(n).<Long>getAs("received_at"));
      assertEquals(Long.parseLong(lines.get(n)[4]), rows.get(n).<Long>getAs("user_id"));
    }
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }

  private static List<Long> numbers(JsonNode row, String... columns) {
    return List.of(columns).stream().map(column -> row.get(column).asLong()).toList();
  }

  private void items() throws Exception {
    world.keep("items", ShopViews.items(world.spark), "update");
  }

  /** The rows with keys from `first` to `last`, and with these further keys. */
  private static Map<String, JsonNode> keys(
      Map<String, JsonNode> rows, int first, int last, Integer... further) {
    Set<String> keys =
        Stream.concat(IntStream.rangeClosed(first, last).boxed(), Stream.of(further))
            .map(String::valueOf)
            .collect(Collectors.toSet());
    Map<String, JsonNode> kept = new TreeMap<>(rows);
    kept.keySet().retainAll(keys);
    return kept;
  }

  /** Times after `NOW_MS` at which the profile was viewed. */
  private Set<Long> times(String view, long owner) throws Exception {
    return ofOwner(view, owner)
        .map(row -> row.get("received_at").asLong() - World.NOW_MS)
        .collect(Collectors.toSet());
  }

  private Set<String> emails(long owner) throws Exception {
    return ofOwner("profile_views_enriched", owner)
        .map(row -> row.get("owner_email").asText() + " " + row.get("viewer_email").asText())
        .collect(Collectors.toSet());
  }

  private Stream<JsonNode> ofOwner(String view, long owner) throws Exception {
    return world.rows(view).values().stream().filter(row -> row.get("owner_id").asLong() == owner);
  }

  private Map<String, Long> recent() throws Exception {
    Map<String, Long> counts = new TreeMap<>();
    world
        .rows("profile_views_per_minute_last_10")
        .forEach((key, row) -> counts.put(key, row.get("pageviews").asLong()));
    return counts;
  }

  private static String minuteKey(long owner, long atMs) {
    return String.format(
        "{\"user_id\":%d,\"received_at_minute\":%d}", owner, atMs / 60_000 * 60_000);
  }

  private static GenericRecord purchased(
      long id, long user, long item, long quantity, String price) {
    return Registry.row(Registry.PURCHASE, id, user, item, quantity, price);
  }

  private void purchase(GenericRecord before, GenericRecord after) throws Exception {
    world.change("purchases", Registry.PURCHASE, before, after);
  }

  private void item(GenericRecord before, GenericRecord after) throws Exception {
    world.change("items", Registry.ITEM, before, after);
  }

  private void user(long id, String email) throws Exception {
    world.change("users", Registry.USER, null, Registry.row(Registry.USER, id, email));
  }

  private void pageview(int partition, long user, String url, long afterMs) {
    world.send(
        "pageviews",
        partition,
        String.format(
            "{\"user_id\": %d, \"url\": \"%s\", \"channel\": \"c\", \"received_at\": %d}",
            user, url, World.NOW_MS + afterMs));
  }
}
