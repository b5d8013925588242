package racetrack.redis;

import java.util.HashMap;
import java.util.Map;
import redis.clients.jedis.Jedis;

/** Finds the campaign of an ad. It is looked up in Redis only once for each ad. Not thread-safe. */
public final class Campaigns implements AutoCloseable {
  private final Jedis redis;
  private final Map<String, String> campaignOf = new HashMap<>();

  public Campaigns(String host, int port) {
    redis = new Jedis(host, port);
  }

  public String of(String ad) {
    return campaignOf.computeIfAbsent(ad, this::lookUp);
  }

  private String lookUp(String ad) {
    String campaign = redis.get(ad);
    if (campaign == null) {
      throw new IllegalStateException("Redis does not know the ad " + ad);
    }
    return campaign;
  }

  @Override
  public void close() {
    redis.close();
  }
}
