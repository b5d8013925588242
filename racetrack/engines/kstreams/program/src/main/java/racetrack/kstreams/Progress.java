package racetrack.kstreams;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.PunctuationType;
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
 * progress. Instead, the tasks of the last stages count the events that have passed through them,
 * by the event's partition in the main topic, and regularly report these totals. One task adds up
 * the totals of all tasks. Reporting the same total twice does no harm.
 */
final class Progress {
  /** An event of the main topic: its partition there, and when it was due (epoch ms). */
  interface Event {
    int partition();

    long dueMs();
  }

  /**
   * The number of a partition's events that a task has processed, and when the newest of them was
   * due.
   */
  record Report(String reporter, long total, long newestMs) {
    static final Serde<Report> SERDE = Json.of(Report.class);
    /** Serde for the reporter's own store, without the name of the reporter. */
    static final Serde<Report> OWN =
        Compact.of(
            2 * Long.BYTES,
            (buffer, report) -> buffer.putLong(report.total).putLong(report.newestMs),
            buffer -> new Report("", buffer.getLong(), buffer.getLong()));

    Report plus(long count, long dueMs) {
      return new Report(reporter, total + count, Math.max(newestMs, dueMs));
    }
  }

  /** A row of the progress view. */
  record PartitionRow(int partition, long total, long maxReceivedAt) {}

  /**
   * The row of the summary view. `dt_ms` is the age of the newest event when the row was computed.
   */
  record SummaryRow(String summaryOf, long total, long maxReceivedAt, long dtMs) {}

  private Progress() {}

  static KStream<Integer, Report> spread(
      TopologyContext topology, KStream<Integer, Report> reports) {
    return reports.repartition(topology.toOne("reports", Serdes.Integer(), Report.SERDE));
  }

  /**
   * Time between reports: a quarter of the commit interval, so that reports are neither late nor
   * expensive.
   */
  private static Duration often(TopologyContext topology) {
    return Duration.ofMillis(Math.max(10, topology.settings.commitMs() / 4));
  }

  /** Keeps totals by partition, and regularly reports those that have changed. */
  abstract static class Reporter<V> implements Processor<Object, V, Integer, Report> {
    private final String stage;
    private final Duration every;
    private final Map<Integer, Report> totals = new HashMap<>();
    private final Set<Integer> changed = new TreeSet<>();
    private String name;

    Reporter(TopologyContext topology, String stage) {
      this.stage = stage;
      every = often(topology);
    }

    @Override
    public void init(ProcessorContext<Integer, Report> context) {
      name = stage + "-" + context.taskId().partition();
      context.schedule(every, PunctuationType.WALL_CLOCK_TIME, now -> report(context, now));
    }

    Report count(int partition, long count, long dueMs) {
      Report before = totals.getOrDefault(partition, new Report(name, 0, 0));
      Report now = before.plus(count, dueMs);
      totals.put(partition, now);
      changed.add(partition);
      return now;
    }

    void restore(int partition, Report own) {
      totals.put(partition, new Report(name, own.total, own.newestMs));
    }

    private void report(ProcessorContext<Integer, Report> context, long nowMs) {
      for (int partition : changed) {
        context.forward(new Record<>(partition, totals.get(partition), nowMs));
      }
      changed.clear();
    }
  }

  /** Counts each event that has passed the processors before this one. */
  static final class Counter extends Reporter<Event> {
    private final String storeName;
    private KeyValueStore<Integer, Report> store;

    Counter(TopologyContext topology, String stage) {
      super(topology, stage);
      storeName = nameOf(stage);
    }

    static String nameOf(String stage) {
      return "counter-" + stage;
    }

    @Override
    public void init(ProcessorContext<Integer, Report> context) {
      super.init(context);
      store = context.getStateStore(storeName);
      try (var all = store.all()) {
        all.forEachRemaining(each -> restore(each.key, each.value));
      }
    }

    @Override
    public void process(Record<Object, Event> record) {
      Event event = record.value();
      store.put(event.partition(), count(event.partition(), 1, event.dueMs()));
    }
  }

  record CounterSupplier(TopologyContext topology, String stage)
      implements ProcessorSupplier<Object, Event, Integer, Report> {
    @Override
    public Processor<Object, Event, Integer, Report> get() {
      return new Counter(topology, stage);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(topology.store(Counter.nameOf(stage), Serdes.Integer(), Report.OWN));
    }
  }

  /** Adds up the totals of all tasks, and writes the rows of the two progress views. */
  static final class Sum extends ContextualProcessor<Integer, Report, Object, Object> {
    private final SumSupplier of;
    private final Map<Integer, Map<String, Report>> reported = new TreeMap<>();
    private final Set<Integer> changed = new TreeSet<>();
    private KeyValueStore<String, Report> store;

    Sum(SumSupplier of) {
      this.of = of;
    }

    @Override
    public void init(ProcessorContext<Object, Object> context) {
      super.init(context);
      store = context.getStateStore(SumSupplier.STORE);
      try (var all = store.all()) {
        all.forEachRemaining(
            each -> take(Integer.parseInt(each.key.split(" ", 2)[0]), each.value));
      }
      context.schedule(often(of.topology), PunctuationType.WALL_CLOCK_TIME, this::report);
    }

    @Override
    public void process(Record<Integer, Report> record) {
      store.put(record.key() + " " + record.value().reporter(), record.value());
      take(record.key(), record.value());
      changed.add(record.key());
    }

    private void take(int partition, Report report) {
      reported.computeIfAbsent(partition, key -> new HashMap<>()).put(report.reporter(), report);
    }

    private void report(long nowMs) {
      if (changed.isEmpty()) {
        return;
      }
      Report all = new Report("all", 0, 0);
      for (int partition : reported.keySet()) {
        Report sum = new Report("sum", 0, 0);
        for (Report report : reported.get(partition).values()) {
          sum = sum.plus(report.total(), report.newestMs());
        }
        if (changed.contains(partition)) {
          var row = new PartitionRow(partition, sum.total(), sum.newestMs());
          context().forward(new Record<>(partition, row, nowMs), of.progress);
        }
        all = all.plus(sum.total(), sum.newestMs());
      }
      changed.clear();
      var row =
          new SummaryRow(all.reporter(), all.total(), all.newestMs(), nowMs - all.newestMs());
      context().forward(new Record<>(row.summaryOf(), row, nowMs), of.summary);
    }
  }

  record SumSupplier(TopologyContext topology, String progress, String summary)
      implements ProcessorSupplier<Integer, Report, Object, Object> {
    static final String STORE = "reports";

    @Override
    public Processor<Integer, Report, Object, Object> get() {
      return new Sum(this);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(topology.store(STORE, Serdes.String(), Report.SERDE));
    }
  }
}
