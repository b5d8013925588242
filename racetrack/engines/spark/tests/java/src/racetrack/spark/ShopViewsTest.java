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
            () -> world.keep("items", ShopViews.ITEMS_AND_PROGRESS, "update"),
            "item_summary", "purchases_by_item", "pageviews_by_item", "pageviews_progress",
            "pageviews_summary")
        .make(
            () -> world.keep("high-value-users", ShopViews.HIGH_VALUE_USERS, "update"),
            "high_value_users")
        .make(
            () -> world.keep("flagged", ShopViews.FLAGGED_PROFILES, "update"),
            "dd_flagged_profiles")
        .make(
            () -> world.keep("flagged-views", ShopViews.FLAGGED_VIEWS, "append"),
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
  void aMessageThatIsNoPageviewEndsTheQueryWhichNamesItsPlace() throws Exception {
    int wrong = 0;
    for (String text :
        Arrays.asList("hello", null, "{\"user_id\": 1}", "{\"user_id\": \"a\", \"url\": \"/\"}")) {
      StreamingQuery query =
          stage.keep("wrong " + wrong++, ShopViews.ITEMS_AND_PROGRESS, "update");
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
