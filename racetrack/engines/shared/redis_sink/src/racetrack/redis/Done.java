package racetrack.redis;

import java.io.Serializable;

/**
 * The number of events of a partition that have been processed (not only views), and when the
 * newest of them was due (epoch ms).
 */
public record Done(int partition, long events, long newestMs) implements Serializable {
  public Done plus(Done more) {
    return new Done(partition, events + more.events, Math.max(newestMs, more.newestMs));
  }
}
