package racetrack.redis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.exceptions.JedisDataException;

/** What the sink leaves. */
class RedisSinkTest extends WithRedis {
  private final RedisSink sink = new RedisSink(HOST, PORT);
  private final Batch batch = new Batch();

  @AfterEach
  void close() {
    sink.close();
  }

  @Test
  void countsAreAddedByCampaignAndWindowHoweverLate() {
    batch.countView("a", 20_000);
    batch.countView("a", 29_999);
    batch.countView("a", 30_000);
    batch.countView("b", 20_001);
    sink.flush(batch);
    batch.countView("a", 20_005);
    batch.countView("a", 10_000);
    sink.flush(batch);
    assertEquals(3, seen("a", 20_000));
    assertEquals(1, seen("a", 30_000));
    assertEquals(1, seen("a", 10_000));
    assertEquals(1, seen("b", 20_000));
    assertEquals(List.of("10000", "20000", "30000"), windowsOf("a"));
    assertEquals(List.of("20000"), windowsOf("b"));
  }

  @Test
  void aSinkAfterAKillGoesOnWithTheSameWindows() {
    batch.countView("a", 20_000);
    sink.flush(batch);
    try (RedisSink next = new RedisSink(HOST, PORT)) {
      batch.countView("a", 20_001);
      next.flush(batch);
    }
    assertEquals(2, seen("a", 20_000));
    assertEquals(List.of("20000"), windowsOf("a"));
  }

  @Test
  void progressIsTheSumOfAllSinks() {
    long dueMs = 1_763_712_000_123L;
    batch.countDone(new Done(3, 2, dueMs));
    batch.countDone(new Done(3, 1, dueMs - 5));
    sink.flush(batch);
    batch.countDone(new Done(3, 10, dueMs - 9));
    batch.countDone(new Done(4, 1, dueMs + 7));
    sink.flush(batch);
    assertEquals("{\"total\":13,\"max_received_at\":1763712000123}", progress("3"));
    assertEquals("{\"total\":1,\"max_received_at\":1763712000130}", progress("4"));
  }

  @Test
  void whatWasWrittenIsEmptiedAndNothingIsWrittenTwice() {
    batch.countView("a", 20_000);
    batch.countDone(new Done(0, 1, 20_000));
    sink.flush(batch);
    sink.flush(batch);
    assertEquals(1, seen("a", 20_000));
    assertEquals("{\"total\":1,\"max_received_at\":20000}", progress("0"));
  }

  /** Else its counts would be missing without a word. */
  @Test
  void whatRedisRefusesIsLoud() {
    redis.set(RedisSink.PROGRESS, "no hash");
    batch.countDone(new Done(0, 1, 20_000));
    assertThrows(JedisDataException.class, () -> sink.flush(batch));
  }

  @Test
  void progressIsPublishedWithItsCounts() throws Exception {
    List<String> heard = new ArrayList<>();
    CountDownLatch subscribed = new CountDownLatch(1);
    CompletableFuture<Void> listener =
        CompletableFuture.runAsync(
            () -> {
              try (Jedis other = new Jedis(HOST, PORT)) {
                other.subscribe(
                    new JedisPubSub() {
                      @Override
                      public void onSubscribe(String channel, int channels) {
                        subscribed.countDown();
                      }

                      @Override
                      public void onMessage(String channel, String message) {
                        heard.add(message);
                        heard.add("seen " + seen("a", 20_000));
                        unsubscribe();
                      }
                    },
                    RedisSink.PROGRESS);
              }
            });
    subscribed.await(20, TimeUnit.SECONDS);
    long beforeMs = System.currentTimeMillis();
    batch.countView("a", 20_000);
    batch.countDone(new Done(5, 4, 20_000));
    sink.flush(batch);
    listener.get(20, TimeUnit.SECONDS);
    String updated = redis.hget(redis.hget("a", "20000"), "time_updated");
    long updatedMs = Long.parseLong(updated);
    assertTrue(beforeMs <= updatedMs && updatedMs <= System.currentTimeMillis(), updated);
    assertEquals(
        List.of("{\"partition\":5,\"total\":4,\"max_received_at\":20000}", "seen 1"), heard);
  }

  @Test
  void anAdIsLookedUpOnce() {
    redis.set("ad", "its campaign");
    try (Campaigns campaigns = new Campaigns(HOST, PORT)) {
      assertEquals("its campaign", campaigns.of("ad"));
      redis.del("ad");
      assertEquals("its campaign", campaigns.of("ad"));
      assertThrows(IllegalStateException.class, () -> campaigns.of("another"));
    }
  }
}
