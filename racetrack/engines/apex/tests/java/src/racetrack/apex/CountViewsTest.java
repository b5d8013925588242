package racetrack.apex;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.datatorrent.stram.engine.OperatorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import racetrack.redis.Done;
import racetrack.redis.RedisSink;
import redis.clients.jedis.Jedis;

/** When counts are written, on a real Redis, whose port REDIS_PORT is. A window takes 500 ms. */
class CountViewsTest {
  private static final String HOST = "127.0.0.1";
  private static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));

  private final Jedis redis = new Jedis(HOST, PORT);
  private final CountViews operator = new CountViews(HOST, PORT, 1_000);

  @BeforeEach
  void start() {
    redis.flushAll();
    operator.setup(new OperatorContext(1, "count", null, null));
    operator.input.process(new View("ad", 20_000, "a", new Done(1, 3, 20_000)));
    operator.input.process(new View(null, 0, null, new Done(1, 1, 30_000)));
  }

  @AfterEach
  void close() {
    operator.teardown();
    redis.close();
  }

  private String progress() {
    return redis.hget(RedisSink.PROGRESS, "1");
  }

  @Test
  void countsAreWrittenAtTheEndOfTheWindowInWhichTheyAreDue() {
    operator.endWindow();
    assertNull(progress());
    operator.endWindow();
    assertEquals("{\"total\":4,\"max_received_at\":30000}", progress());
    assertEquals("1", redis.hget(redis.hget("a", "20000"), "seen_count"));
  }

  @Test
  void nothingIsInMemoryAtACheckpoint() {
    operator.beforeCheckpoint(60);
    assertEquals("{\"total\":4,\"max_received_at\":30000}", progress());
  }
}
