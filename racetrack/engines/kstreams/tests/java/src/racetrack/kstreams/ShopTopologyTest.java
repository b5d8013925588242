package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.avro.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Every view of the shop, after what is changed and what is taken back. */
class ShopTopologyTest {
  private World world;

  @BeforeEach
  void open() throws IOException {
    world = new World(ShopTopology::build, kind());
  }

  World.Kind kind() {
    return World.Kind.DELIVERED;
  }

  @AfterEach
  void close() {
    world.close();
  }

  @Test
  void tablesAreAsTheyAreNow() {
    item(1, "a");
    item(2, "b");
    item(1, "c");
    world.change("mysql.shop.items", 2L, Rows.ITEM, null);
    JsonNode row = world.row("items");
    assertEquals("c", row.get("name").asText());
    assertEquals("1.50", row.get("price").decimalValue().toPlainString());
    assertTrue(row.get("updated_at").isNull());
    List<String> columns = List.copyOf(Json.MAPPER.convertValue(row, Map.class).keySet());
    assertEquals("id", columns.get(0));
  }

  @Test
  void anItemIsSummarizedWhateverCameFirst() {
    purchase(1, 7, 5, 2, "10.10");
    view(7, "/products/5", 0);
    item(5, "a");
    view(8, "/products/5", 0);
    JsonNode row = world.row("item_summary");
    assertEquals("10.10", row.get("revenue").decimalValue().toPlainString());
    assertEquals(List.of(1L, 2L, 2L), numbers(row, "orders", "items_sold", "pageviews"));
    assertEquals(0.5, row.get("conversion_rate").asDouble());
  }

  @Test
  void moneyIsAddedUpToTheLastDigit() {
    purchase(1, 7, 5, 2, "9999999999.99");
    purchase(2, 7, 5, 3, "9999999999.99");
    purchase(3, 7, 5, 1, "0.01");
    BigDecimal revenue = world.row("purchases_by_item").get("revenue").decimalValue();
    assertEquals("19999999999.99", revenue.toPlainString());
    BigDecimal value = world.row("high_value_users").get("lifetime_value").decimalValue();
    assertEquals("49999999999.96", value.toPlainString());
  }

  @Test
  void anItemThatNobodyWantsHasARowToo() {
    item(5, "a");
    JsonNode row = world.row("item_summary");
    assertEquals(List.of(0L, 0L, 0L), numbers(row, "orders", "items_sold", "pageviews"));
    assertEquals(0, row.get("revenue").decimalValue().signum());
    assertTrue(row.get("conversion_rate").isNull());
    assertEquals(List.of(), world.rows("purchases_by_item"));
    assertEquals(List.of(), world.rows("pageviews_by_item"));
  }

  @Test
  void whatAPurchaseAddedIsTakenBackWhenItChangesOrGoes() {
    item(5, "a");
    item(6, "b");
    purchase(1, 7, 5, 1, "10.00");
    purchase(2, 7, 5, 2, "0.30");
    purchase(1, 7, 6, 3, "12.00");
    assertEquals(List.of(2L), numbers(only("purchases_by_item", "item_id", 5), "items_sold"));
    assertEquals(List.of(3L), numbers(only("item_summary", "item_id", 6), "items_sold"));
    world.change("mysql.shop.purchases", 2L, Rows.PURCHASE, null);
    assertEquals(List.of(), world.rows("purchases_by_item", "item_id", 5));
    JsonNode row = only("item_summary", "item_id", 5);
    assertEquals(List.of(0L, 0L), numbers(row, "orders", "items_sold"));
    assertEquals(0, row.get("revenue").decimalValue().signum());
  }

  @Test
  void theFirstTwentyAreShownAndEqualsInTheOrderOfTheirIds() {
    LongStream.rangeClosed(1, 25).forEach(id -> item(id, "i" + id));
    assertEquals(ids(1, 20), shown("top_viewed_items"));
    view(7, "/products/24", 0);
    view(7, "/products/24", 0);
    view(7, "/products/23", 0);
    purchase(1, 7, 23, 1, "1.00");
    Set<Long> expected = ids(1, 18);
    expected.addAll(Set.of(23L, 24L));
    assertEquals(expected, shown("top_viewed_items"));
    assertEquals(2, only("top_viewed_items", "item_id", 24).get("pageviews").asLong());
    // 23 first, 24 with a rate of zero; those without a rate are last.
    assertEquals(expected, shown("top_converting_items"));
    world.change("mysql.shop.items", 24L, Rows.ITEM, null);
    expected.remove(24L);
    expected.add(19L);
    assertEquals(expected, shown("top_viewed_items"));
  }

  @Test
  void theLastTenViewsOfAProfileAreShown() {
    for (long at = 1; at <= 12; at++) {
      view(at, "/profiles/3", at == 5 ? 100 : at);
    }
    Set<Long> viewers =
        world.rows("profile_views").stream()
            .map(row -> row.get("viewer_id").asLong())
            .collect(Collectors.toSet());
    Set<Long> expected = ids(3, 12);
    assertEquals(expected, viewers);
    assertEquals(10, world.rows("profile_views_enriched").size());
    view(99, "/profiles/3", 1);
    assertEquals(List.of(), world.rows("profile_views", "viewer_id", 99));
  }

  @Test
  void viewsShowTheEmailsOfNow() {
    user(3, "owner@a");
    view(8, "/profiles/3", 0);
    view(3, "/profiles/3", 1);
    JsonNode row = only("profile_views_enriched", "viewer_id", 8);
    assertEquals("owner@a", row.get("owner_email").asText());
    assertTrue(row.get("viewer_email").isNull());
    user(8, "viewer@a");
    user(3, "owner@b");
    row = only("profile_views_enriched", "viewer_id", 8);
    assertEquals("owner@b", row.get("owner_email").asText());
    assertEquals("viewer@a", row.get("viewer_email").asText());
    assertEquals(
        "owner@b", only("profile_views_enriched", "viewer_id", 3).get("viewer_email").asText());
    world.change("mysql.shop.users", 8L, Rows.USER, null);
    assertTrue(only("profile_views_enriched", "viewer_id", 8).get("viewer_email").isNull());
  }

  @Test
  void theWindowMovesOnWithTheClock() {
    view(8, "/profiles/3", -599_000);
    view(8, "/profiles/3", -590_000);
    view(8, "/profiles/3", -700_000);
    assertEquals(2, sum("profile_views_per_minute_last_10"));
    world.pass(Duration.ofSeconds(2));
    assertEquals(1, sum("profile_views_per_minute_last_10"));
    world.pass(Duration.ofSeconds(20));
    assertEquals(List.of(), world.rows("profile_views_per_minute_last_10"));
  }

  @Test
  void aFlagShowsWhatWasSeenBeforeAndAfterIt() {
    view(8, "/products/5", 0);
    view(9, "/products/5", 0);
    for (String text : List.of("8", "\"8\"", "no", "8", "12345678901234567890")) {
      world.send("dd_flagged_profiles", text);
    }
    view(8, "/nowhere", 1);
    view(9, "/nowhere", 1);
    assertEquals(8, world.row("dd_flagged_profiles").get("user_id").asLong());
    List<JsonNode> rows = world.rows("dd_flagged_profile_view");
    assertEquals(2, rows.size());
    assertEquals(2, world.rows("dd_flagged_profile_view", "user_id", 8).size());
    JsonNode old = only("dd_flagged_profile_view", "offset", 0);
    assertEquals(List.of("products", "5"), texts(old, "pageview_type", "target_id"));
    assertTrue(only("dd_flagged_profile_view", "offset", 2).get("target_id").isNull());
  }

  @Test
  void aLongUrlIsRememberedWhole() {
    String url = "/" + "x".repeat(60_000);
    view(8, url, 0);
    world.send("dd_flagged_profiles", "8");
    assertEquals(url, world.row("dd_flagged_profile_view").get("url").asText());
  }

  @Test
  void usersOfHighValueComeAndGoInTheTopicToo() {
    purchase(1, 7, 5, 2, "5000.00");
    assertEquals(List.of(), world.rows("high_value_users"));
    purchase(2, 7, 5, 1, "0.01");
    JsonNode row = world.row("high_value_users");
    assertEquals("10000.01", row.get("lifetime_value").decimalValue().toPlainString());
    assertTrue(row.get("email").isNull());
    user(7, "a@b");
    assertEquals("a@b", world.row("hvu_test").get("email").asText());
    assertEquals(world.row("high_value_users"), world.row("hvu_test"));
    world.change("mysql.shop.purchases", 2L, Rows.PURCHASE, null);
    assertEquals(List.of(), world.rows("high_value_users"));
    assertEquals(List.of(), world.rows("hvu_test"));
  }

  @Test
  void eachPageviewIsCountedOnceWhateverItIsOf() {
    view(8, "/products/5", 10);
    view(8, "/products/5", 30);
    view(8, "/profiles/5", 20);
    view(8, "/about", 5);
    for (String view : List.of("pageviews_progress", "pageviews_summary")) {
      JsonNode row = world.row(view);
      assertEquals(4, row.get("total").asLong());
      assertEquals(World.NOW_MS + 30, row.get("max_received_at").asLong());
    }
    assertEquals(0, world.row("pageviews_progress").get("partition").asLong());
  }

  @Test
  void rowsOfNullOnlyAreRowsAndAddNothing() {
    for (String table : List.of("users", "items", "purchases")) {
      Schema row = Map.of("users", Rows.USER, "items", Rows.ITEM, "purchases", Rows.PURCHASE).get(table);
      world.change("mysql.shop." + table, 1L, row, Map.of("id", 1L));
      assertEquals(1, world.row(table).get("id").asLong());
    }
    JsonNode sold = world.row("purchases_by_item");
    assertEquals(1, sold.get("orders").asLong());
    for (String column : List.of("item_id", "revenue", "items_sold")) {
      assertTrue(sold.get(column).isNull(), column);
    }
    JsonNode item = world.row("item_summary");
    assertTrue(item.get("name").isNull());
    assertEquals(List.of(0L, 0L, 0L), numbers(item, "revenue", "orders", "items_sold"));

    Map<String, Object> priced = new HashMap<>(Rows.purchase(2, 7, 5, 4, "20000.00"));
    priced.remove("item_id");
    priced.remove("user_id");
    world.change("mysql.shop.purchases", 2L, Rows.PURCHASE, priced);
    assertEquals("20000.00", world.row("purchases_by_item").get("revenue").decimalValue().toString());
    assertTrue(world.row("high_value_users").get("id").isNull());
    world.change("mysql.shop.purchases", 2L, Rows.PURCHASE, null);
    assertTrue(world.row("purchases_by_item").get("revenue").isNull());
    world.change("mysql.shop.purchases", 1L, Rows.PURCHASE, null);
    assertEquals(List.of(), world.rows("purchases_by_item"));
  }

  @Test
  void oddTextAndTheLargestNumbersComeThrough() {
    String odd = "\ud83d\ude42 \"q\" 'a'\r\n<b>&amp;</b>\\N,";
    user(3, odd);
    item(5, odd);
    purchase(1, 3, 5, 4_294_967_295L, "9999999999.99");
    JsonNode best = world.row("hvu_test");
    assertEquals(odd, best.get("email").asText());
    assertEquals(
        new BigDecimal("9999999999.99").multiply(BigDecimal.valueOf(4_294_967_295L)),
        best.get("lifetime_value").decimalValue());
    assertEquals(odd, world.row("item_summary").get("name").asText());
    assertEquals(4_294_967_295L, world.row("item_summary").get("items_sold").asLong());
  }

  @Test
  void aMessageThatIsNoPageviewIsAnErrorThatNamesItsPlace() {
    view(8, "/about", 0);
    List<String> wrong = new ArrayList<>(List.of("no JSON", "{\"user_id\": 1}", "{\"user_id\": null}"));
    wrong.add(null);
    for (String text : wrong) {
      PrintStream before = System.out;
      ByteArrayOutputStream said = new ByteArrayOutputStream();
      System.setOut(new PrintStream(said, true));
      try {
        assertThrows(RuntimeException.class, () -> world.send("pageviews", text));
      } finally {
        System.setOut(before);
      }
      String line = said.toString();
      assertTrue(line.matches(
          "(?s)RACETRACK refused topic=pageviews, partition=0, offset=[1-4], field=, reason=.+: .+"), line);
    }
  }

  private void user(long id, String email) {
    world.change("mysql.shop.users", id, Rows.USER, Rows.user(id, email));
  }

  private void item(long id, String name) {
    world.change("mysql.shop.items", id, Rows.ITEM, Rows.item(id, name));
  }

  private void purchase(long id, long user, long item, long quantity, String price) {
    var row = Rows.purchase(id, user, item, quantity, price);
    world.change("mysql.shop.purchases", id, Rows.PURCHASE, row);
  }

  private void view(long user, String url, long afterMs) {
    world.send(
        "pageviews",
        String.format(
            "{\"user_id\": %d, \"url\": \"%s\", \"channel\": \"social\", \"received_at\": %d}",
            user, url, World.NOW_MS + afterMs));
  }

  private JsonNode only(String view, String column, long value) {
    List<JsonNode> rows = world.rows(view, column, value);
    assertEquals(1, rows.size(), rows::toString);
    return rows.get(0);
  }

  private Set<Long> shown(String view) {
    return world.rows(view).stream()
        .map(row -> row.get("item_id").asLong())
        .collect(Collectors.toSet());
  }

  private long sum(String view) {
    return world.rows(view).stream().mapToLong(row -> row.get("pageviews").asLong()).sum();
  }

  private static Set<Long> ids(long first, long last) {
    return LongStream.rangeClosed(first, last).boxed().collect(Collectors.toSet());
  }

  private static List<Long> numbers(JsonNode row, String... columns) {
    return List.of(columns).stream().map(column -> row.get(column).asLong()).toList();
  }

  private static List<String> texts(JsonNode row, String... columns) {
    return List.of(columns).stream().map(column -> row.get(column).asText()).toList();
  }
}
