package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.junit.jupiter.api.Test;
import racetrack.program.ValidMessage;
import racetrack.upsert.ShopContract;

class ShopViewsTest extends ShopContract<World> {
  private static final String RECENT = "profile_views_per_minute_last_10";

  @Override
  protected World open() throws Exception {
    World world =
        new World()
            .topic("pageviews", "pageviews")
            .topic("dd_flagged_profiles", "flags")
            .topic("mysql.shop.users", "users")
            .topic("mysql.shop.items", "items")
            .topic("mysql.shop.purchases", "purchases");
    return world
        .make(
            () -> world.keep("items", ShopViews.items(world.spark), "update"),
            "item_summary", "purchases_by_item", "pageviews_by_item", "pageviews_progress",
            "pageviews_summary", "top_viewed_items", "top_converting_items")
        .make(
            () -> world.keep("last-views", ShopViews.lastViews(world.spark), "update"),
            "profile_views", "profile_views_enriched")
        .make(
            () -> world.keep("recent-views", ShopViews.recentViews(world.spark), "update"), RECENT)
        .make(
            () -> world.keep("high-value-users", ShopViews.HIGH_VALUE_USERS, "update"),
            "high_value_users")
        .make(
            () -> world.keep("flagged", ShopViews.FLAGGED_PROFILES, "update"),
            "dd_flagged_profiles")
        .make(
            () -> world.keep("flagged-views", ShopViews.flaggedViews(world.spark), "append"),
            "dd_flagged_profile_view");
  }

  @Test
  void progressIsCountedByPartition() {
    stage.pageview(0, 7, "/products/5", 1);
    stage.pageview(1, 8, "/products/5", 3);
    stage.pageview(1, 8, "/profiles/5", 2);
    assertEquals(
        List.of(2L, World.NOW_MS + 3),
        World.numbers(
            stage.row("pageviews_progress", "partition", 1), "total", "max_received_at"));
  }

  @Test
  void theWindowMovesOnWithTheClock() {
    assertEquals(0, recentViews()); // starts the query, which may take longer than the window moves
    long age = System.currentTimeMillis() - World.NOW_MS;
    view(8, "/profiles/3", age - 596_000);
    view(8, "/profiles/3", age - 300_000);
    view(8, "/profiles/3", age - 602_000);
    assertEquals(2, recentViews());
    long deadline = System.nanoTime() + 60_000_000_000L;
    while (recentViews() == 2 && System.nanoTime() < deadline) {
      // In tests, only messages cause micro-batches.
      stage.pageview(0, 8, "/about", age);
    }
    assertEquals(1, recentViews());
  }

  private long recentViews() {
    return stage.rows(RECENT).stream().mapToLong(row -> row.get("pageviews").asLong()).sum();
  }

  @Test
  void aMessageThatIsNoPageviewEndsTheQueryWhichNamesItsPlace() throws Exception {
    int wrong = 0;
    for (String text :
        Arrays.asList("hello", null, "{\"user_id\": 1}", "{\"user_id\": \"a\", \"url\": \"/\"}")) {
      StreamingQuery query =
          stage.keep("wrong " + wrong++, ShopViews.items(stage.spark), "update");
      stage.send("pageviews", 3, text);
      var error =
          assertThrows(StreamingQueryException.class, () -> query.awaitTermination(60_000));
      assertTrue(
          error.getMessage().contains("topic=pageviews, partition=3, offset="), error::getMessage);
    }
  }

  @Test
  void validMessagesAreReadAsByAllEngines() throws Exception {
    List<ValidMessage> messages = ValidMessage.all();
    List<Row> rows = stage.pageviews(messages.stream().map(ValidMessage::pageview).toList());
    for (int n = 0; n < messages.size(); n++) {
      assertEquals(messages.get(n).text(), rows.get(n).getAs("channel"));
      assertEquals(messages.get(n).dueMs(), rows.get(n).<Long>getAs("received_at"));
      assertEquals(messages.get(n).userId(), rows.get(n).<Long>getAs("user_id"));
    }
  }
}
