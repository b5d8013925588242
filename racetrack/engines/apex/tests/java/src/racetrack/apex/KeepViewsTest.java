package racetrack.apex;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;
import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/** What becomes of events that are no views. */
class KeepViewsTest {
  private final KeepViews operator = new KeepViews();
  private final Heard<Event> heard = Heard.of(operator.output);

  private static Event event(String type, int partition, long timeMs) {
    return new Event(
        new AdEvent("u", "p", "ad", "mail", type, timeMs, "ip"), new Done(partition, 1, timeMs));
  }

  @Test
  void aViewTakesAlongWhatWasLeftOutBeforeItOfItsPartition() {
    Event view = event("view", 2, 1_800);
    operator.input.process(event("click", 2, 1_700));
    operator.input.process(event("purchase", 2, 1_900));
    operator.input.process(event("click", 1, 5_000));
    operator.input.process(view);
    operator.input.process(view);
    assertEquals(
        List.of(
            new Event(view.said(), new Done(2, 3, 1_900)),
            new Event(view.said(), new Done(2, 1, 1_800))),
        heard.tuples);
  }

  /** So nothing is left in memory at a checkpoint. */
  @Test
  void whatNoViewTakesAlongGoesByItselfAtTheEndOfAWindow() {
    operator.input.process(event("click", 1, 1_000));
    operator.input.process(event("click", 1, 2_000));
    operator.endWindow();
    operator.endWindow();
    assertEquals(List.of(new Event(null, new Done(1, 2, 2_000))), heard.tuples);
  }
}
