package racetrack.kstreams;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;

/**
 * Computes the progress views from events whose processing is complete.
 *
 * <p>A topology consists of stages with topics between them. An event that the first stage has read
 * may wait long before the last stage, so counting events as they are read would report too much
 * progress. Instead, the tasks of the last stages count the events that reach them, in a table
 * whose rows leave the cache when those of the other views do: when Kafka Streams commits. One task
 * adds up the counts of all tasks, as one task sorts all items for the top lists.
 */
final class Progress {
  /** Events of the main topic: their number, their partition there, and when the newest was due. */
  interface Event {
    int partition();

    long dueMs();

    default long events() {
      return 1;
    }
  }

  /** A row of the progress view. */
  record PartitionRow(int partition, long total, long maxReceivedAt) {}

  /**
   * The row of the summary view. `dt_ms` is the age of the newest event when the row was computed.
   */
  record SummaryRow(String summaryOf, long total, long maxReceivedAt, long dtMs) {}

  private Progress() {}

  /** Adds the name of the task to its counts. */
  static final class Sign<K> extends ContextualProcessor<K, Counts, String, Counts> {
    private final String stage;

    Sign(String stage) {
      this.stage = stage;
    }

    @Override
    public void process(Record<K, Counts> record) {
      context().forward(record.withKey(stage + "-" + context().taskId().partition()));
    }
  }

  /** Adds up the counts of all tasks, and writes the rows of the two progress views. */
  static final class Sum extends ContextualProcessor<String, Counts, Object, Object> {
    private final SumSupplier of;
    /** Task → its last counts. */
    private final Map<String, Counts> reported = new HashMap<>();
    private final Counts all;
    private KeyValueStore<String, Counts> store;

    Sum(SumSupplier of) {
      this.of = of;
      all = Counts.none(of.topology.partitions);
    }

    @Override
    public void init(ProcessorContext<Object, Object> context) {
      super.init(context);
      store = context.getStateStore(SumSupplier.STORE);
      try (var rows = store.all()) {
        rows.forEachRemaining(row -> replace(row.key, row.value));
      }
    }

    @Override
    public void process(Record<String, Counts> record) {
      Counts now = record.value();
      store.put(record.key(), now);
      Counts before = replace(record.key(), now);
      for (int partition = 0; partition < of.topology.partitions; partition++) {
        if (now.count(partition) != before.count(partition)) {
          var row = new PartitionRow(partition, all.count(partition), all.newestMs(partition));
          context().forward(record.<Object>withKey(partition).withValue(row), of.progress);
        }
      }
      long age = context().currentSystemTimeMs() - all.newestMs();
      var row = new SummaryRow("all", all.total(), all.newestMs(), age);
      context().forward(record.<Object>withKey(row.summaryOf()).withValue(row), of.summary);
    }

    /** Replaces a task's counts in the sum, and returns those before. */
    private Counts replace(String task, Counts now) {
      Counts before = reported.put(task, now);
      if (before == null) {
        before = Counts.none(of.topology.partitions);
      }
      for (int partition = 0; partition < of.topology.partitions; partition++) {
        long more = now.count(partition) - before.count(partition);
        all.add(partition, more, now.newestMs(partition));
      }
      return before;
    }
  }

  record SumSupplier(TopologyContext topology, String progress, String summary)
      implements ProcessorSupplier<String, Counts, Object, Object> {
    static final String STORE = "counts-of-tasks";

    @Override
    public Processor<String, Counts, Object, Object> get() {
      return new Sum(this);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(topology.store(STORE, Serdes.String(), Counts.SERDE));
    }
  }
}
