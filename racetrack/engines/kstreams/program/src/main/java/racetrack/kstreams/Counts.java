package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.serialization.Serde;

/**
 * For each partition of the main topic, the number of events that a task has processed, and when
 * the newest of them was due.
 */
record Counts(long[] counts, long[] newestMs) {
  static final Serde<Counts> SERDE =
      Compact.ofSize(
          value -> 2 * Long.BYTES * value.counts.length,
          (buffer, value) -> {
            Arrays.stream(value.counts).forEach(buffer::putLong);
            Arrays.stream(value.newestMs).forEach(buffer::putLong);
          },
          buffer -> {
            int partitions = buffer.remaining() / (2 * Long.BYTES);
            return new Counts(longs(buffer, partitions), longs(buffer, partitions));
          });

  static Counts none(int partitions) {
    return new Counts(new long[partitions], new long[partitions]);
  }

  /**
   * Adds events, and returns this object, not a copy: a store returns a new object each time it is
   * read, so nothing else refers to this one.
   */
  Counts add(Progress.Event event) {
    return add(event.partition(), event.events(), event.dueMs());
  }

  Counts add(int partition, long events, long dueMs) {
    counts[partition] += events;
    newestMs[partition] = Math.max(dueMs, newestMs[partition]);
    return this;
  }

  long total() {
    return Arrays.stream(counts).sum();
  }

  long newest() {
    return Arrays.stream(newestMs).max().orElse(0);
  }

  private static long[] longs(ByteBuffer buffer, int length) {
    long[] values = new long[length];
    for (int place = 0; place < length; place++) {
      values[place] = buffer.getLong();
    }
    return values;
  }
}
