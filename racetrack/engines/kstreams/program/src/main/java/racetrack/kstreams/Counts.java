package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.util.function.LongBinaryOperator;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * For each partition of the main topic, the number of events that a task has processed, and when
 * the newest of them was due (epoch ms). The numbers stay in the bytes that a store or a topic
 * delivers, because a store is read and written for each event.
 */
record Counts(ByteBuffer numbers) {
  static final Serde<Counts> SERDE =
      Serdes.serdeFrom(
          (topic, counts) -> counts == null ? null : counts.numbers.array(),
          (topic, data) -> data == null ? null : new Counts(ByteBuffer.wrap(data)));

  private static final int BYTES = 2 * Long.BYTES;

  static Counts none(int partitions) {
    return new Counts(ByteBuffer.allocate(partitions * BYTES));
  }

  /** Adds events to this object, and returns it. A store copies it when it is read and written. */
  Counts add(Progress.Event event) {
    return add(event.partition(), event.events(), event.dueMs());
  }

  Counts add(int partition, long events, long dueMs) {
    numbers.putLong(partition * BYTES, count(partition) + events);
    numbers.putLong(partition * BYTES + Long.BYTES, Math.max(newestMs(partition), dueMs));
    return this;
  }

  long count(int partition) {
    return numbers.getLong(partition * BYTES);
  }

  long newestMs(int partition) {
    return numbers.getLong(partition * BYTES + Long.BYTES);
  }

  long total() {
    return over(0, Long::sum);
  }

  long newestMs() {
    return over(Long.BYTES, Math::max);
  }

  private long over(int offset, LongBinaryOperator reduce) {
    long result = 0;
    for (int at = offset; at < numbers.capacity(); at += BYTES) {
      result = reduce.applyAsLong(result, numbers.getLong(at));
    }
    return result;
  }
}
