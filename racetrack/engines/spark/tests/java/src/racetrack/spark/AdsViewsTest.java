package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.generic.GenericRecord;
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
    world = new World();
    world.topic("ad_events");
    world.topic("ad_changes");
  }

  @AfterEach
  void close() throws Exception {
    world.close();
  }

  @Test
  void viewsAreCountedByCampaignAndTenSeconds() throws Exception {
    keep();
    ad("a", null, "x");
    ad("b", null, "x");
    event(0, "a", "view", 0);
    event(0, "a", "view", 10_000);
    world.settle();
    event(0, "a", "view", 9_999);
    event(1, "b", "view", 1);
    event(1, "a", "click", 7);
    world.settle();
    assertEquals(Map.of("x 0", 3L, "x 10000", 1L), windows());
    assertEquals(2, world.rows("ad_events_progress").get("{\"partition\":1}").get("total").asInt());
    var all = world.rows("ad_events_summary").get("\"all\"");
    assertEquals(5, all.get("total").asLong());
    assertEquals(World.NOW_MS + 10_000, all.get("max_received_at").asLong());
  }

  @Test
  void theViewsOfAnUnknownAdWaitForItsCampaign() throws Exception {
    keep();
    event(0, "a", "view", 0);
    event(0, "", "view", 0);
    world.settle();
    assertEquals(Map.of(), windows());
    assertEquals(2, world.rows("ad_events_summary").get("\"all\"").get("total").asLong());
    ad("a", null, "x");
    world.settle();
    assertEquals(Map.of("x 0", 1L), windows());
  }

  @Test
  void allViewsOfAnAdFollowItToAnotherCampaign() throws Exception {
    keep();
    ad("a", null, "x");
    ad("b", null, "x");
    event(0, "a", "view", 0);
    event(0, "a", "view", 10_000);
    event(0, "b", "view", 10_000);
    world.settle();
    ad("a", "x", "z");
    ad("a", "z", "y");
    event(0, "a", "view", 10_000);
    world.settle();
    assertEquals(Map.of("x 10000", 1L, "y 0", 1L, "y 10000", 2L), windows());
    ad("a", "y", null);
    event(0, "a", "view", 10_000);
    world.settle();
    assertEquals(Map.of("x 10000", 1L), windows());
    ad("a", null, "x");
    world.settle();
    assertEquals(Map.of("x 0", 1L, "x 10000", 4L), windows());
  }

  @Test
  void whatIsNoEventEndsTheQuery() throws Exception {
    StreamingQuery query = keep();
    world.send("ad_events", 0, "{\"ad_id\": ");
    var error =
        assertThrows(StreamingQueryException.class, () -> query.awaitTermination(60_000));
    assertTrue(
        error.getMessage().contains("topic=ad-events, partition=0, offset="), error::getMessage);
  }

  private StreamingQuery keep() throws Exception {
    return world.keep("counts", AdsViews.counts(world.spark), "update");
  }

  /** A change of an ad's campaign; null: there was no such ad, or is none. */
  private void ad(String ad, String before, String after) throws Exception {
    world.change("ad_changes", Registry.AD, ofCampaign(ad, before), ofCampaign(ad, after));
  }

  private static GenericRecord ofCampaign(String ad, String campaign) {
    return campaign == null ? null : Registry.row(Registry.AD, ad, campaign);
  }

  /** Campaign and start of a window, after `NOW_MS` → number of views. */
  private Map<String, Long> windows() throws Exception {
    Map<String, Long> found = new TreeMap<>();
    for (JsonNode row : world.rows("campaign_windows").values()) {
      long after = row.get("window_start_ms").asLong() - World.NOW_MS;
      String key = row.get("campaign_id").asText() + " " + after;
      found.put(key, row.get("seen_count").asLong());
    }
    return found;
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
