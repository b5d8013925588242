package racetrack.storm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import java.util.Map;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import racetrack.redis.Done;
import racetrack.redis.WithRedis;

/** When the last stage acknowledges. */
class CountViewsTest extends WithRedis {
  private static final int NEVER = Integer.MAX_VALUE;

  private final Collected collected = new Collected();

  private CountViews bolt(ProcessingGuarantee guarantee, int flushMs) {
    CountViews bolt =
        new CountViews(new Settings("", HOST, PORT, guarantee, 1, flushMs, 1_000, Map.of(), ""));
    bolt.prepare(Map.of(), null, collected.collector());
    return bolt;
  }

  @Test
  void nothingIsAcknowledgedBeforeItIsInRedis() {
    CountViews bolt = bolt(ProcessingGuarantee.AT_LEAST_ONCE, NEVER);
    bolt.execute(Tuples.joined("a", 20_000, new Done(1, 3, 20_000)));
    assertEquals(List.of(), collected.acked);
    assertNull(progress("1"));
  }

  @Test
  void aFlushAcknowledgesWhatItWroteAndWhatIsNoViewCountsNowhere() {
    CountViews bolt = bolt(ProcessingGuarantee.AT_LEAST_ONCE, 0);
    Tuple other = Tuples.joined(null, 0, new Done(1, 2, 20_000));
    bolt.execute(other);
    assertEquals("{\"total\":2,\"max_received_at\":20000}", progress("1"));
    assertEquals(1, redis.dbSize());
    Tuple view = Tuples.joined("a", 20_000, new Done(1, 3, 20_000));
    bolt.execute(view);
    assertEquals(List.of(other, view), collected.acked);
    assertEquals("{\"total\":5,\"max_received_at\":20000}", progress("1"));
    assertEquals(1, seen("a", 20_000));
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
