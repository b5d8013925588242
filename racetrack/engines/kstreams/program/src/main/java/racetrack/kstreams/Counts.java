package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;

/**
 * The number of events that one row of a view counts, by partition of the main topic.
 *
 * <p>Kafka Streams keeps counts in a cache until it commits, and updates the views only then.
 * Because each count is divided by partition, progress can be computed from the counts that leave
 * the cache. Counting events as they enter the cache would report progress too early.
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

  Counts plus(Progress.Event event) {
    Counts next = new Counts(counts.clone(), newestMs.clone());
    int partition = event.partition();
    next.counts[partition]++;
    next.newestMs[partition] = Math.max(event.dueMs(), newestMs[partition]);
    return next;
  }

  long total() {
    return Arrays.stream(counts).sum();
  }

  private static long[] longs(ByteBuffer buffer, int length) {
    long[] found = new long[length];
    Arrays.setAll(found, each -> buffer.getLong());
    return found;
  }

  /** Counts as progress how much each row's counts have grown. */
  static final class Counter extends Progress.Reporter<Counts> {
    private final CounterSupplier of;
    private final Map<Object, Counts> known = new HashMap<>();

    Counter(CounterSupplier of) {
      super(of.topology, of.stage);
      this.of = of;
    }

    @Override
    public void init(ProcessorContext<Integer, Progress.Report> context) {
      super.init(context);
      TimestampedKeyValueStore<Object, Counts> store = context.getStateStore(of.store);
      try (var all = store.all()) {
        all.forEachRemaining(each -> take(each.key, each.value.value()));
      }
    }

    @Override
    public void process(Record<Object, Counts> record) {
      take(record.key(), record.value());
    }

    private void take(Object row, Counts now) {
      Counts before = known.put(row, now);
      for (int partition = 0; partition < now.counts.length; partition++) {
        long more = now.counts[partition] - (before == null ? 0 : before.counts[partition]);
        if (more > 0) {
          count(partition, more, now.newestMs[partition]);
        }
      }
    }
  }

  record CounterSupplier(TopologyContext topology, String stage, String store)
      implements ProcessorSupplier<Object, Counts, Integer, Progress.Report> {
    @Override
    public Processor<Object, Counts, Integer, Progress.Report> get() {
      return new Counter(this);
    }
  }
}
