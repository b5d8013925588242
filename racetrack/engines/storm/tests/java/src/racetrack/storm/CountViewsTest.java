package racetrack.storm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import racetrack.redis.Done;
import racetrack.redis.RedisSink;
import redis.clients.jedis.Jedis;

/** When the last stage acknowledges, on a real Redis, whose port REDIS_PORT is. */
class CountViewsTest {
  private static final String HOST = "127.0.0.1";
  private static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));
  private static final int NEVER = Integer.MAX_VALUE;

  private final Jedis redis = new Jedis(HOST, PORT);
  private final Collected collected = new Collected();

  @BeforeEach
  void empty() {
    redis.flushAll();
  }

  @AfterEach
  void close() {
    redis.close();
  }

  private CountViews bolt(ProcessingGuarantee guarantee, int flushMs) {
    CountViews bolt =
        new CountViews(new Settings("", HOST, PORT, guarantee, 1, flushMs, 1_000, ""));
    bolt.prepare(Map.of(), null, new OutputCollector(collected));
    return bolt;
  }

  @Test
  void nothingIsAcknowledgedBeforeItIsInRedis() {
    CountViews bolt = bolt(ProcessingGuarantee.AT_LEAST_ONCE, NEVER);
    bolt.execute(Tuples.joined("a", 20_000, new Done(1, 3, 20_000)));
    assertEquals(List.of(), collected.acked);
    assertNull(redis.hget(RedisSink.PROGRESS, "1"));
  }

  @Test
  void aFlushAcknowledgesWhatItWrote() {
    CountViews bolt = bolt(ProcessingGuarantee.AT_LEAST_ONCE, 0);
    Tuple view = Tuples.joined("a", 20_000, new Done(1, 3, 20_000));
    bolt.execute(view);
    assertEquals(List.of(view), collected.acked);
    assertEquals("{\"total\":3,\"max_received_at\":20000}", redis.hget(RedisSink.PROGRESS, "1"));
    assertEquals("1", redis.hget(redis.hget("a", "20000"), "seen_count"));
  }

  @Test
  void whatIsNotAViewIsDoneAndCountsNowhere() {
    CountViews bolt = bolt(ProcessingGuarantee.AT_LEAST_ONCE, 0);
    bolt.execute(Tuples.joined(null, 0, new Done(1, 2, 20_000)));
    assertEquals("{\"total\":2,\"max_received_at\":20000}", redis.hget(RedisSink.PROGRESS, "1"));
    assertEquals(1, redis.dbSize());
  }

  @Test
  void aTickFlushes() {
    CountViews bolt = bolt(ProcessingGuarantee.AT_MOST_ONCE, 0);
    Tuple tick = Tuples.tick();
    bolt.execute(Tuples.joined("a", 20_000, new Done(1, 1, 20_000)));
    bolt.execute(tick);
    assertEquals(List.of(tick), collected.acked);
  }
}
