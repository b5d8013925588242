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
import java.util.Set;
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
    world.keep("items", ShopViews.ITEMS_AND_PROGRESS);
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
  void rowsOfNullOnlyAreRowsAndAddNothing() throws Exception {
    world.keep("items", ShopViews.ITEMS_AND_PROGRESS);
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
      StreamingQuery query = world.keep("wrong " + wrong++, ShopViews.ITEMS_AND_PROGRESS);
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
