package racetrack.storm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import java.util.Map;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import racetrack.redis.Done;

/** What becomes of events that are no views. */
class KeepViewsTest {
  private final Collected collected = new Collected();
  private final KeepViews bolt = new KeepViews();

  @BeforeEach
  void prepare() {
    bolt.prepare(Map.of(), null, collected.collector());
  }

  private Done done(int index) {
    return (Done) collected.emitted.get(index).values().get(7);
  }

  @Test
  void aViewTakesAlongWhatWasLeftOutBeforeIt() {
    bolt.execute(Tuples.event("click", 1, 5_000)); // of another partition
    Tuple click = Tuples.event("click", 2, 1_700);
    Tuple purchase = Tuples.event("purchase", 2, 1_900);
    Tuple view = Tuples.event("view", 2, 1_800);
    bolt.execute(click);
    bolt.execute(purchase);
    assertEquals(List.of(purchase), collected.acked);
    bolt.execute(view);
    assertEquals(new Done(2, 3, 1_900), done(0));
    assertEquals(List.of(view, click), collected.emitted.get(0).anchors());
    assertEquals(List.of(purchase, view, click), collected.acked);

    Tuple next = Tuples.event("view", 2, 2_000);
    bolt.execute(next);
    assertEquals(new Done(2, 1, 2_000), done(1));
    assertEquals(List.of(next), collected.emitted.get(1).anchors());
    assertEquals("ad", collected.emitted.get(1).values().get(2));
  }

  @Test
  void whatNoViewTakesAlongGoesByItselfAfterAWhile() {
    Tuple click = Tuples.event("click", 1, 1_000);
    bolt.execute(click);
    bolt.execute(Tuples.tick());
    assertEquals(new Done(1, 1, 1_000), done(0));
    assertNull(collected.emitted.get(0).values().get(2));
    assertEquals(List.of(click), collected.emitted.get(0).anchors());
    bolt.execute(Tuples.tick());
    assertEquals(1, collected.emitted.size());
  }
}
