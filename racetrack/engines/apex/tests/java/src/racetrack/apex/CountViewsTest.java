package racetrack.apex;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.datatorrent.api.Attribute;
import com.datatorrent.api.Context.DAGContext;
import com.datatorrent.stram.engine.OperatorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import racetrack.redis.Done;
import racetrack.redis.WithRedis;

/** When counts are written. */
class CountViewsTest extends WithRedis {
  private final CountViews operator = new CountViews(HOST, PORT, 100);

  /** Starts it with windows that take half of the time between two writes. */
  @BeforeEach
  void start() {
    Attribute.AttributeMap attributes = new Attribute.AttributeMap.DefaultAttributeMap();
    attributes.put(DAGContext.STREAMING_WINDOW_SIZE_MILLIS, 50);
    operator.setup(new OperatorContext(1, "count", attributes, null));
    operator.input.process(new View("ad", 20_000, "a", new Done(1, 3, 20_000)));
    operator.input.process(new View(null, 0, null, new Done(1, 1, 30_000)));
  }

  @AfterEach
  void close() {
    operator.teardown();
  }

  @Test
  void countsAreWrittenAtTheEndOfTheWindowInWhichTheyAreDue() {
    operator.endWindow();
    assertNull(progress("1"));
    operator.endWindow();
    assertEquals("{\"total\":4,\"max_received_at\":30000}", progress("1"));
    assertEquals(1, seen("a", 20_000));
  }

  @Test
  void nothingIsInMemoryAtACheckpoint() {
    operator.beforeCheckpoint(60);
    assertEquals("{\"total\":4,\"max_received_at\":30000}", progress("1"));
  }
}
