package racetrack.redis;

import java.io.Serializable;

/** How many events of a partition have been worked off, views or not, and when the newest was due
 * (epoch ms). */
public record Done(int partition, long events, long newestMs) implements Serializable {
  public Done plus(Done more) {
    return new Done(partition, events + more.events, Math.max(newestMs, more.newestMs));
  }
}
