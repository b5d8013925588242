package racetrack.redis;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import redis.clients.jedis.Jedis;

/** A real, empty Redis, whose port REDIS_PORT is. */
public abstract class WithRedis {
  protected static final String HOST = "127.0.0.1";
  protected static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));

  protected final Jedis redis = new Jedis(HOST, PORT);

  @BeforeEach
  void empty() {
    redis.flushAll();
  }

  @AfterEach
  void disconnect() {
    redis.close();
  }

  protected String progress(String partition) {
    return redis.hget(RedisSink.PROGRESS, partition);
  }

  protected long seen(String campaign, long windowMs) {
    return Long.parseLong(redis.hget(redis.hget(campaign, "" + windowMs), "seen_count"));
  }

  protected List<String> windowsOf(String campaign) {
    return redis.lrange(redis.hget(campaign, "windows"), 0, -1).stream().sorted().toList();
  }
}
