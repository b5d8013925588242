package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
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
  void eachEventIsCountedOnceWhateverItIs() {
    ad("a", "x");
    event("a", "view", 7);
    event("a", "click", 9);
    world.pass(Duration.ofMillis(25));
    world.pass(Duration.ofMillis(25));
    JsonNode row = world.row("ad_events_summary");
    assertEquals(2, row.get("total").asLong());
    assertEquals(World.NOW_MS + 9, row.get("max_received_at").asLong());
    assertEquals(2, world.row("ad_events_progress").get("total").asLong());
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
