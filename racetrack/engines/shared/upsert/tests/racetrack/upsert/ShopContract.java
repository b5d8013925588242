package racetrack.upsert;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static racetrack.upsert.Registry.purchase;
import static racetrack.upsert.Stage.numbers;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.avro.generic.GenericRecord;
import org.junit.jupiter.api.Test;

/** The views of the shop that all engines make. */
public abstract class ShopContract<S extends Stage> extends ViewsContract<S> {
  @Test
  void anItemIsSummarizedWhateverCameFirstAndTakesBackWhatChanges() {
    GenericRecord first = purchase(1, 7L, 5L, 2L, "9999999999.99");
    GenericRecord second = purchase(2, 7L, 5L, 3L, "0.02");
    purchased(null, first);
    stage.pageview(0, 7, "/products/5", 1);
    assertEquals(List.of(), stage.rows("item_summary"));
    item(5, "a", null);
    item(6, "b", "c");
    purchased(null, second);
    stage.pageview(0, 8, "/products/5", 30);
    stage.pageview(0, 8, "/profiles/5", 20);
    stage.pageview(0, 8, "/about", 5);
    JsonNode row = item(5);
    assertEquals("10000000000.01", Stage.decimal(row, "revenue"));
    assertEquals(List.of(2L, 5L, 2L), numbers(row, "orders", "items_sold", "pageviews"));
    assertEquals(1.0, row.get("conversion_rate").asDouble());
    assertTrue(row.get("category").isNull());
    JsonNode other = item(6);
    assertEquals(List.of(0L, 0L, 0L), numbers(other, "orders", "items_sold", "pageviews"));
    assertEquals(0, other.get("revenue").decimalValue().signum());
    assertTrue(other.get("conversion_rate").isNull());
    assertEquals(Set.of(5L), stage.values("purchases_by_item", "item_id"));
    assertEquals(Set.of(5L), stage.values("pageviews_by_item", "item_id"));
    for (String view : List.of("pageviews_progress", "pageviews_summary")) {
      JsonNode counted = stage.row(view);
      assertEquals(
          List.of(4L, Stage.NOW_MS + 30), numbers(counted, "total", "max_received_at"));
    }

    purchased(second, purchase(2, 7L, 6L, 3L, "0.02"));
    assertEquals(List.of(2L), numbers(item(5), "items_sold"));
    purchased(first, null);
    assertEquals(Set.of(6L), stage.values("purchases_by_item", "item_id"));
    assertEquals(List.of(0L, 0L), numbers(item(5), "orders", "items_sold"));
    assertEquals(0, item(5).get("revenue").decimalValue().signum());
    assertEquals(List.of(3L), numbers(item(6), "items_sold"));
  }

  @Test
  void usersOfHighValueComeAndGoAndShowTheEmailOfNow() {
    stage.change("shop.users", null, Registry.user(3, "old@a"));
    purchased(null, purchase(1, 3L, 5L, 2L, "5000.00"));
    purchased(null, purchase(2, 4L, 5L, 3L, "5000.00"));
    JsonNode row = stage.row("high_value_users");
    assertEquals(4, row.get("id").asLong());
    assertTrue(row.get("email").isNull());
    purchased(null, purchase(3, 3L, 5L, 1L, "0.01"));
    stage.change("shop.users", Registry.user(3, "old@a"), Registry.user(3, "new@a"));
    row = stage.row("high_value_users", "id", 3);
    assertEquals("new@a", row.get("email").asText());
    assertEquals("10000.01", Stage.decimal(row, "lifetime_value"));
    assertEquals(2, row.get("purchases").asLong());
    purchased(purchase(2, 4L, 5L, 3L, "5000.00"), null);
    assertEquals(Set.of(3L), stage.values("high_value_users", "id"));
  }

  @Test
  void pageviewsOfFlaggedUsersAreFoundWhicheverCameFirst() {
    stage.pageview(0, 7, "/products/5", 1);
    stage.pageview(0, 8, "/", 1);
    assertEquals(List.of(), stage.rows("dd_flagged_profile_view"));
    for (String text : List.of("7", "\"7\"", "seven", "7", "12345678901234567890")) {
      stage.send("dd_flagged_profiles", text);
    }
    assertEquals(7, stage.row("dd_flagged_profiles").get("user_id").asLong());
    JsonNode old = stage.row("dd_flagged_profile_view");
    assertEquals("products", old.get("pageview_type").asText());
    stage.pageview(0, 7, "/", 2);
    stage.pageview(0, 8, "/", 2);
    assertEquals(2, stage.rows("dd_flagged_profile_view", "user_id", 7).size());
    assertEquals(2, stage.rows("dd_flagged_profile_view").size());
    assertTrue(stage.row("dd_flagged_profile_view", "target_id", 0).get("target_id").isNull());
  }

  @Test
  void rowsOfNullOnlyAreRowsAndAddNothing() {
    GenericRecord empty = purchase(1, null, null, null, null);
    purchased(null, empty);
    item(5, null, null);
    JsonNode sold = stage.row("purchases_by_item");
    assertEquals(1, sold.get("orders").asLong());
    for (String column : List.of("item_id", "revenue", "items_sold")) {
      assertTrue(sold.get(column).isNull(), column);
    }
    assertTrue(item(5).get("name").isNull());
    assertEquals(List.of(0L, 0L, 0L), numbers(item(5), "revenue", "orders", "items_sold"));
    GenericRecord priced = purchase(2, null, null, 4_294_967_295L, "9999999999.99");
    purchased(null, priced);
    assertEquals("9999999999.99", Stage.decimal(stage.row("purchases_by_item"), "revenue"));
    JsonNode best = stage.row("high_value_users");
    assertTrue(best.get("id").isNull());
    assertEquals(
        new BigDecimal("9999999999.99").multiply(BigDecimal.valueOf(4_294_967_295L)),
        best.get("lifetime_value").decimalValue());
    purchased(priced, null);
    assertTrue(stage.row("purchases_by_item").get("revenue").isNull());
    purchased(empty, null);
    assertEquals(List.of(), stage.rows("purchases_by_item"));
    assertEquals(List.of(), stage.rows("high_value_users"));
  }

  @Test
  void theFirstTwentyAreShownAndEqualsInTheOrderOfTheirIds() {
    LongStream.rangeClosed(1, 25).forEach(id -> item(id, "i" + id, null));
    assertEquals(ids(1, 20), stage.values("top_viewed_items", "item_id"));
    view(7, "/products/24", 0);
    view(7, "/products/24", 0);
    view(7, "/products/23", 0);
    purchased(null, purchase(1, 7L, 23L, 1L, "1.00"));
    Set<Long> expected = ids(1, 18);
    expected.addAll(Set.of(23L, 24L));
    assertEquals(expected, stage.values("top_viewed_items", "item_id"));
    assertEquals(2, stage.row("top_viewed_items", "item_id", 24).get("pageviews").asLong());
    // 23 first, 24 with a rate of zero; those without a rate are last.
    assertEquals(expected, stage.values("top_converting_items", "item_id"));
    stage.change("shop.items", Registry.item(24, "i24", null), null);
    expected.remove(24L);
    expected.add(19L);
    assertEquals(expected, stage.values("top_viewed_items", "item_id"));
  }

  @Test
  void theLastTenViewsOfAProfileAreShown() {
    for (long at = 1; at <= 12; at++) {
      view(at, "/profiles/3", at == 5 ? 100 : at);
    }
    assertEquals(ids(3, 12), stage.values("profile_views", "viewer_id"));
    assertEquals(10, stage.rows("profile_views_enriched").size());
    view(99, "/profiles/3", 1);
    assertEquals(List.of(), stage.rows("profile_views", "viewer_id", 99));
  }

  @Test
  void viewsShowTheEmailsOfNow() {
    user(3, "owner@a");
    view(8, "/profiles/3", 0);
    view(3, "/profiles/3", 1);
    JsonNode row = viewedBy(8);
    assertEquals("owner@a", row.get("owner_email").asText());
    assertTrue(row.get("viewer_email").isNull());
    user(8, "viewer@a");
    user(3, "owner@b");
    row = viewedBy(8);
    assertEquals("owner@b", row.get("owner_email").asText());
    assertEquals("viewer@a", row.get("viewer_email").asText());
    assertEquals("owner@b", viewedBy(3).get("viewer_email").asText());
    stage.change("shop.users", Registry.user(8, "viewer@a"), null);
    assertTrue(viewedBy(8).get("viewer_email").isNull());
  }

  protected void item(long id, String name, String category) {
    stage.change("shop.items", null, Registry.item(id, name, category));
  }

  protected JsonNode item(long id) {
    return stage.row("item_summary", "item_id", id);
  }

  protected void purchased(GenericRecord before, GenericRecord after) {
    stage.change("shop.purchases", before, after);
  }

  protected void view(long user, String url, long afterMs) {
    stage.pageview(0, user, url, afterMs);
  }

  protected void user(long id, String email) {
    stage.change("shop.users", null, Registry.user(id, email));
  }

  private JsonNode viewedBy(long user) {
    return stage.row("profile_views_enriched", "viewer_id", user);
  }

  private static Set<Long> ids(long first, long last) {
    return LongStream.rangeClosed(first, last).boxed().collect(Collectors.toSet());
  }
}
