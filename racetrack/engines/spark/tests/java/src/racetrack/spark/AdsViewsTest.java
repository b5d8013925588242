package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Yahoo's benchmark: what is counted where, and that nothing is lost. */
class AdsViewsTest {
  private World world;

  @BeforeEach
  void open() throws Exception {
    world = new World(rocksDb());
    world.topic("ad_events");
  }

  boolean rocksDb() {
    return false;
  }

  @AfterEach
  void close() throws Exception {
    world.close();
  }

  @Test
  void viewsAreCountedByCampaignAndTenSeconds() throws Exception {
    ads("('a', 'x'), ('b', 'x')");
    world.keep("counts", AdsViews.COUNTS);
    event(0, "a", "view", 0);
    event(0, "a", "view", 10_000);
    world.settle();
    event(0, "a", "view", 9_999);
    event(1, "b", "view", 1);
    event(1, "a", "click", 7);
    world.settle();
    var rows = world.rows("campaign_windows");
    String first = "{\"campaign_id\":\"x\",\"window_start_ms\":" + World.NOW_MS + "}";
    assertEquals(3, rows.get(first).get("seen_count").asLong());
    assertEquals(2, rows.size());
    assertEquals(2, world.rows("ad_events_progress").get("{\"partition\":1}").get("total").asInt());
    var all = world.rows("ad_events_summary").get("\"all\"");
    assertEquals(5, all.get("total").asLong());
    assertEquals(World.NOW_MS + 10_000, all.get("max_received_at").asLong());
  }

  @Test
  void anEventWaitsForItsAd() throws Exception {
    ads("('a', 'x')");
    StreamingQuery first = world.keep("counts", AdsViews.COUNTS);
    event(0, "a", "view", 0);
    world.settle();
    event(0, "b", "view", 1);
    event(0, "a", "view", 2);
    var error = assertThrows(StreamingQueryException.class, () -> first.awaitTermination(60_000));
    assertTrue(new AdsViews().mayGoOn(error));
    assertEquals(1, total());
    ads("('a', 'x'), ('b', 'y')");
    world.keep("counts", AdsViews.COUNTS);
    world.settle();
    assertEquals(3, total());
    assertEquals(2, world.rows("campaign_windows").size());
  }

  @Test
  void whatIsNoEventEndsTheQuery() throws Exception {
    ads("('a', 'x')");
    StreamingQuery query = world.keep("counts", AdsViews.COUNTS);
    world.send("ad_events", 0, "{\"ad_id\": ");
    var error =
        assertThrows(StreamingQueryException.class, () -> query.awaitTermination(60_000));
    assertTrue(!new AdsViews().mayGoOn(error));
    assertTrue(
        error.getMessage().contains("topic=ad-events, partition=0, offset="), error::getMessage);
  }

  private void ads(String rows) {
    world.spark
        .sql("SELECT * FROM VALUES " + rows + " AS (ad_id, campaign_id)")
        .createOrReplaceTempView("campaign_of");
  }

  private long total() throws Exception {
    return world.rows("ad_events_summary").get("\"all\"").get("total").asLong();
  }

  private void event(int partition, String ad, String type, long afterMs) {
    world.send(
        "ad_events",
        partition,
        String.format(
            "{\"user_id\": \"u\", \"ad_id\": \"%s\", \"event_type\": \"%s\", \"event_time\": %d}",
            ad, type, World.NOW_MS + afterMs));
  }
}
