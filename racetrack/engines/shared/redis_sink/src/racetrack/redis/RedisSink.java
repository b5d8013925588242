package racetrack.redis;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import racetrack.redis.Batch.Window;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * Writes counts to Redis in the layout of Yahoo's benchmark.
 *
 * <p>The hash `<campaign id>` maps each window to the window's id, and `windows` to the id of a
 * list of all windows. The hash `<window id>` contains `seen_count` and `time_updated`. Progress is
 * written in the same transaction.
 *
 * <p>Each campaign must be written by only one sink: a sink first reads the ids, and then creates
 * the missing ones.
 */
public final class RedisSink implements AutoCloseable {
  /**
   * Name of a hash (partition → progress), and of a channel on which each change of the hash is
   * published.
   */
  public static final String PROGRESS = "ad_events_progress";

  private static final String LIST = "windows";

  /**
   * Script that adds to the partitions' totals in Redis. It must be atomic, because other sinks add
   * to them, too.
   */
  private static final String ADD_PROGRESS =
      """
      for i = 1, #ARGV, 3 do
        local partition, total, newest = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
        local before = redis.call('HGET', KEYS[1], partition)
        if before then
          before = cjson.decode(before)
          total = total + before.total
          newest = math.max(newest, before.max_received_at)
        end
        local row = string.format('"total":%d,"max_received_at":%d', total, newest)
        redis.call('HSET', KEYS[1], partition, '{' .. row .. '}')
        redis.call('PUBLISH', KEYS[1], string.format('{"partition":%s,%s}', partition, row))
      end
      """;

  private final Jedis redis;

  public RedisSink(String host, int port) {
    redis = new Jedis(host, port);
  }

  /** Writes the whole batch in one transaction, and empties the batch. */
  public void flush(Batch batch) {
    if (batch.isEmpty()) {
      return;
    }
    Ids ids = new Ids(batch);
    String nowMs = Long.toString(System.currentTimeMillis());
    try (Transaction transaction = redis.multi()) {
      batch.views().forEach((window, views) -> {
        String id = ids.ofWindow(transaction, window);
        transaction.hincrBy(id, "seen_count", views);
        transaction.hset(id, "time_updated", nowMs);
      });
      transaction.eval(ADD_PROGRESS, List.of(PROGRESS), progressOf(batch));
      for (Object answer : transaction.exec()) {
        if (answer instanceof JedisDataException refused) {
          throw refused;
        }
      }
    }
    batch.clear();
  }

  private static List<String> progressOf(Batch batch) {
    List<String> arguments = new ArrayList<>();
    for (Done done : batch.done()) {
      arguments.add(Integer.toString(done.partition()));
      arguments.add(Long.toString(done.events()));
      arguments.add(Long.toString(done.newestMs()));
    }
    return arguments;
  }

  /**
   * The ids of the batch's windows and of their campaigns' lists. They are read from Redis, and
   * created if they are missing there.
   */
  private final class Ids {
    private final Map<Window, Response<String>> windows = new HashMap<>();
    private final Map<String, Response<String>> lists = new HashMap<>();
    private final Map<String, String> newLists = new HashMap<>();

    Ids(Batch batch) {
      try (Pipeline pipeline = redis.pipelined()) {
        for (Window window : batch.views().keySet()) {
          windows.put(window, pipeline.hget(window.campaign(), fieldOf(window)));
          lists.computeIfAbsent(window.campaign(), campaign -> pipeline.hget(campaign, LIST));
        }
      }
    }

    String ofWindow(Transaction transaction, Window window) {
      String known = windows.get(window).get();
      if (known != null) {
        return known;
      }
      String id = UUID.randomUUID().toString();
      transaction.hset(window.campaign(), fieldOf(window), id);
      transaction.lpush(listOf(transaction, window.campaign()), fieldOf(window));
      return id;
    }

    private String listOf(Transaction transaction, String campaign) {
      String known = lists.get(campaign).get();
      if (known != null) {
        return known;
      }
      return newLists.computeIfAbsent(campaign, key -> {
        String id = UUID.randomUUID().toString();
        transaction.hset(campaign, LIST, id);
        return id;
      });
    }
  }

  private static String fieldOf(Window window) {
    return Long.toString(window.startMs());
  }

  /** Waits until a sink has written progress. */
  public static void awaitProgress(String host, int port) {
    try (Jedis redis = new Jedis(host, port)) {
      redis.subscribe(
          new JedisPubSub() {
            @Override
            public void onMessage(String channel, String message) {
              unsubscribe();
            }
          },
          PROGRESS);
    }
  }

  @Override
  public void close() {
    redis.close();
  }
}
