package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.junit.jupiter.api.Test;
import racetrack.upsert.AdsContract;

class AdsViewsTest extends AdsContract<World> {
  private StreamingQuery counts;

  @Override
  protected World open() throws Exception {
    World world = new World().topic("ad-events", "ad_events").topic("mysql.ads.ads", "ad_changes");
    counts = world.keep("counts", AdsViews.counts(world.spark), "update");
    return world;
  }

  @Test
  void progressIsCountedByPartition() {
    stage.event(0, "a", "view", 0);
    stage.event(1, "a", "click", 7);
    stage.event(1, "b", "view", 1);
    assertEquals(
        List.of(2L), World.numbers(stage.row("ad_events_progress", "partition", 1), "total"));
  }

  @Test
  void whatIsNoEventEndsTheQuery() {
    stage.send("ad-events", "{\"ad_id\": ");
    var error =
        assertThrows(StreamingQueryException.class, () -> counts.awaitTermination(60_000));
    assertTrue(
        error.getMessage().contains("topic=ad-events, partition=0, offset="), error::getMessage);
  }
}
