package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Yahoo's benchmark: what is counted where, and that nothing is lost. */
class AdsTopologyTest {
  private World world;

  @BeforeEach
  void open() throws IOException {
    world = new World(AdsTopology::build, kind());
  }

  World.Kind kind() {
    return World.Kind.DELIVERED;
  }

  @AfterEach
  void close() {
    world.close();
  }

  @Test
  void viewsAreCountedByCampaignAndTenSeconds() {
    ad("a", "x");
    ad("b", "x");
    for (long at : List.of(0, 9_999, 10_000)) {
      event("a", "view", at);
    }
    event("b", "view", 1);
    event("a", "click", 1);
    List<JsonNode> first = world.rows("campaign_windows", "window_start_ms", World.NOW_MS);
    assertEquals(3, first.get(0).get("seen_count").asLong());
    assertEquals("x", first.get(0).get("campaign_id").asText());
    assertEquals(2, world.rows("campaign_windows").size());
  }

  @Test
  void anEventWaitsForItsAd() {
    event("a", "view", 0);
    event("a", "view", 1);
    event("b", "view", 1);
    assertEquals(List.of(), world.rows("campaign_windows"));
    ad("a", "x");
    assertEquals(2, world.row("campaign_windows").get("seen_count").asLong());
    ad("a", "x");
    assertEquals(2, world.row("campaign_windows").get("seen_count").asLong());
  }

  @Test
  void aMovedAdTakesItsViewsAlong() {
    ad("a", "x");
    ad("ab", "x");
    event("a", "view", 0);
    event("a", "view", 10_000);
    event("ab", "view", 10_000);
    ad("a", "y");
    assertEquals(Map.of("y 0", 1L, "x 10000", 1L, "y 10000", 1L), counts());
    event("a", "view", 10_001);
    assertEquals(Map.of("y 0", 1L, "x 10000", 1L, "y 10000", 2L), counts());
    ad("a", "x");
    assertEquals(Map.of("x 0", 1L, "x 10000", 3L), counts());
  }

  @Test
  void viewsOfADeletedAdDoNotCountUntilItIsBack() {
    ad("a", "x");
    ad("b", "x");
    event("a", "view", 0);
    event("b", "view", 0);
    world.change("mysql.ads.ads", "a", Rows.AD, null);
    event("a", "view", 1);
    assertEquals(Map.of("x 0", 1L), counts());
    world.change("mysql.ads.ads", "b", Rows.AD, null);
    assertEquals(Map.of(), counts());
    ad("a", "y");
    assertEquals(Map.of("y 0", 2L), counts());
  }

  @Test
  void eachEventIsCountedOnceWhateverItIs() {
    ad("a", "x");
    event("a", "view", 7);
    event("a", "click", 9);
    event("an unknown ad", "view", 8);
    JsonNode row = world.row("ad_events_summary");
    assertEquals(3, row.get("total").asLong());
    assertEquals(World.NOW_MS + 9, row.get("max_received_at").asLong());
    assertEquals(3, world.row("ad_events_progress").get("total").asLong());
  }

  @Test
  void eventsAreCountedByAdWhereTheyAreRead() {
    ad("a", "x");
    event("a", "view", 7);
    event("a", "click", 9);
    assertEquals(Set.of("ads", "changes", "counts"), world.innerTopics());
  }

  /** The number of views by campaign and start of the window (ms after the first). */
  private Map<String, Long> counts() {
    Map<String, Long> found = new HashMap<>();
    for (JsonNode row : world.rows("campaign_windows")) {
      long start = row.get("window_start_ms").asLong() - World.NOW_MS;
      found.put(row.get("campaign_id").asText() + " " + start, row.get("seen_count").asLong());
    }
    return found;
  }

  private void ad(String id, String campaign) {
    Map<String, Object> row = Map.of("ad_id", id, "campaign_id", campaign);
    world.change("mysql.ads.ads", id, Rows.AD, row);
  }

  private void event(String ad, String type, long afterMs) {
    world.send(
        "ad-events",
        String.format(
            "{\"user_id\": \"u\", \"ad_id\": \"%s\", \"event_type\": \"%s\", \"event_time\": %d}",
            ad, type, World.NOW_MS + afterMs));
  }
}
