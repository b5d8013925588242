package racetrack.upsert;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.generic.GenericRecord;
import org.junit.jupiter.api.Test;

/** Yahoo's benchmark: what is counted where, and that nothing is lost. */
public abstract class AdsContract<S extends Stage> extends ViewsContract<S> {
  @Test
  void viewsAreCountedByCampaignAndTenSecondsAndAllEventsOnce() {
    ad("a", null, "x");
    ad("b", null, "x");
    stage.event(0, "a", "view", 0);
    stage.event(0, "a", "view", 10_000);
    assertEquals(Map.of("x 0", 1L, "x 10000", 1L), windows());
    stage.event(0, "a", "view", 9_999);
    stage.event(0, "b", "view", 1);
    stage.event(0, "a", "click", 10_007);
    stage.event(0, "an unknown ad", "view", 8);
    assertEquals(Map.of("x 0", 3L, "x 10000", 1L), windows());
    JsonNode all = stage.row("ad_events_summary");
    assertEquals(6, all.get("total").asLong());
    assertEquals(Stage.NOW_MS + 10_007, all.get("max_received_at").asLong());
    assertEquals(6, stage.row("ad_events_progress").get("total").asLong());
  }

  @Test
  void theViewsOfAnUnknownAdWaitForItsCampaign() {
    stage.event(0, "a", "view", 0);
    stage.event(0, "a", "view", 1);
    stage.event(0, "", "view", 0);
    assertEquals(Map.of(), windows());
    assertEquals(3, stage.row("ad_events_summary").get("total").asLong());
    ad("a", null, "x");
    assertEquals(Map.of("x 0", 2L), windows());
    ad("a", "x", "x");
    assertEquals(Map.of("x 0", 2L), windows());
  }

  @Test
  void allViewsOfAnAdFollowItToAnotherCampaign() {
    ad("a", null, "x");
    ad("ab", null, "x");
    stage.event(0, "a", "view", 0);
    stage.event(0, "a", "view", 10_000);
    stage.event(0, "ab", "view", 10_000);
    ad("a", "x", "z");
    ad("a", "z", "y");
    assertEquals(Map.of("y 0", 1L, "x 10000", 1L, "y 10000", 1L), windows());
    stage.event(0, "a", "view", 10_001);
    assertEquals(Map.of("y 0", 1L, "x 10000", 1L, "y 10000", 2L), windows());
    ad("a", "y", "x");
    assertEquals(Map.of("x 0", 1L, "x 10000", 3L), windows());
  }

  @Test
  void viewsOfADeletedAdDoNotCountUntilItIsBack() {
    ad("a", null, "x");
    ad("b", null, "x");
    stage.event(0, "a", "view", 0);
    stage.event(0, "b", "view", 0);
    ad("a", "x", null);
    stage.event(0, "a", "view", 1);
    assertEquals(Map.of("x 0", 1L), windows());
    ad("b", "x", null);
    assertEquals(Map.of(), windows());
    ad("a", null, "y");
    assertEquals(Map.of("y 0", 2L), windows());
  }

  /** A change of an ad's campaign; null: there was no such ad, or is none. */
  protected void ad(String ad, String before, String after) {
    stage.change("ads.ads", of(ad, before), of(ad, after));
  }

  private static GenericRecord of(String ad, String campaign) {
    return campaign == null ? null : Registry.ad(ad, campaign);
  }

  /** Campaign and start of a window, after `NOW_MS` → number of views. */
  private Map<String, Long> windows() {
    Map<String, Long> found = new TreeMap<>();
    for (JsonNode row : stage.rows("campaign_windows")) {
      long after = row.get("window_start_ms").asLong() - Stage.NOW_MS;
      found.put(row.get("campaign_id").asText() + " " + after, row.get("seen_count").asLong());
    }
    return found;
  }
}
