package racetrack.kstreams;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import racetrack.kstreams.Compact.Pair;
import racetrack.kstreams.Nexmark.Event;

/**
 * Auctions with the most bids in each window of ten seconds; a window begins every two.
 *
 * <p>Bids are counted by auction and step of two seconds; each step is in five windows. When a
 * window closes, each task finds the first among its own auctions, and one task the first of these.
 */
final class Q5 {
  private static final long SIZE_MS = 10_000;
  private static final long STEP_MS = 2_000;

  private Q5() {}

  static void connect(Nexmark nexmark) {
    TopologyContext topology = nexmark.topology;
    KStream<Long, Timed<Most>> mostOfTasks =
        nexmark
            .timed("q5-bids", STEP_MS, Q5::bidOf, Nexmark.ID)
            .process(count(topology))
            .repartition(topology.toOne("q5-windows", Nexmark.ID, Timed.serde(Most.SERDE)));
    topology.append(mostOfTasks.process(compare(topology)), "q5");
  }

  /** An auction, and one bid. */
  private static KeyValue<Long, Long> bidOf(Event event) {
    return event.bid() == null ? null : KeyValue.pair(event.bid().auction(), 1L);
  }

  /** `starttime` is not in the published query: it tells the windows apart. */
  record Row(long auction, long num, long starttime) {}

  /** The largest number of bids in a window, and the auctions that have as many. */
  record Most(long bids, List<Long> auctions) {
    static final Serde<Most> SERDE =
        Compact.ofSize(
            most -> Long.BYTES * (1 + most.auctions.size()),
            (buffer, most) -> {
              buffer.putLong(most.bids);
              most.auctions.forEach(buffer::putLong);
            },
            buffer -> {
              long bids = buffer.getLong();
              List<Long> auctions = new ArrayList<>();
              while (buffer.hasRemaining()) {
                auctions.add(buffer.getLong());
              }
              return new Most(bids, auctions);
            });

    static Most of(Map<Long, Long> bids) {
      long most = Collections.max(bids.values());
      List<Long> auctions =
          bids.keySet().stream().filter(auction -> bids.get(auction) == most).toList();
      return new Most(most, auctions);
    }

    Most and(Most other) {
      if (other == null || bids != other.bids) {
        return other == null || bids > other.bids ? this : other;
      }
      Set<Long> all = new TreeSet<>(auctions);
      all.addAll(other.auctions);
      return new Most(bids, List.copyOf(all));
    }
  }

  /** Counts the bids on a task's auctions, and finds the most in each window. */
  private static final class Count extends WindowProcessor<Long, Long, Timed<Most>> {
    private static final String NAME = "q5-count";

    /** Start of a step, and auction → number of bids. */
    private KeyValueStore<Pair, Long> counts;

    Count(int inputs) {
      super(NAME, inputs);
    }

    @Override
    public void init(ProcessorContext<Long, Timed<Most>> context) {
      super.init(context);
      counts = context.getStateStore(NAME);
    }

    @Override
    void keep(long auction, long atMs, Long bids) {
      Pair key = new Pair(atMs - atMs % STEP_MS, auction);
      Long before = counts.get(key);
      counts.put(key, before == null ? bids : before + bids);
    }

    @Override
    void close(long fromMs, long toMs, long timestamp) {
      long first = Math.max(fromMs, firstStep(toMs)) + STEP_MS;
      for (long end = first; end <= toMs; end += STEP_MS) {
        Map<Long, Long> bids = new HashMap<>();
        try (var rows = steps(end - SIZE_MS, end)) {
          rows.forEachRemaining(row -> bids.merge(row.key.second(), row.value, Long::sum));
        }
        if (!bids.isEmpty()) {
          Timed<Most> most = Timed.row(end, Most.of(bids));
          context().forward(new Record<>(end, most, timestamp));
        }
        remove(end - SIZE_MS);
      }
      Timed<Most> watermark = Timed.watermark(context().taskId().partition(), toMs);
      context().forward(new Record<>(toMs, watermark, timestamp));
    }

    private long firstStep(long toMs) {
      try (var rows = steps(0, toMs)) {
        return rows.hasNext() ? rows.next().key.first() : toMs;
      }
    }

    /** No later window contains this step. */
    private void remove(long step) {
      List<Pair> keys = new ArrayList<>();
      try (var rows = steps(step, step + STEP_MS)) {
        rows.forEachRemaining(row -> keys.add(row.key));
      }
      keys.forEach(counts::delete);
    }

    private KeyValueIterator<Pair, Long> steps(long from, long to) {
      return counts.range(new Pair(from, 0), new Pair(to - 1, 0));
    }
  }

  private static ProcessorSupplier<Long, Timed<Long>, Long, Timed<Most>> count(
      TopologyContext topology) {
    return new Supplied<>(
        () -> new Count(topology.partitions),
        Set.of(
            WindowProcessor.watermarks(topology, Count.NAME),
            topology.store(Count.NAME, Pair.SERDE, Nexmark.ID)));
  }

  /** Finds the most in each window over all tasks. */
  private static final class Compare extends WindowProcessor<Most, Object, Row> {
    private static final String NAME = "q5-compare";

    /** End of a window → the most so far. */
    private KeyValueStore<Long, Most> windows;

    Compare(int inputs) {
      super(NAME, inputs);
    }

    @Override
    public void init(ProcessorContext<Object, Row> context) {
      super.init(context);
      windows = context.getStateStore(NAME);
    }

    @Override
    void keep(long end, long atMs, Most ofTask) {
      windows.put(end, ofTask.and(windows.get(end)));
    }

    @Override
    void close(long fromMs, long toMs, long timestamp) {
      List<KeyValue<Long, Most>> closed = new ArrayList<>();
      try (var rows = windows.range(0L, toMs)) {
        rows.forEachRemaining(closed::add);
      }
      for (KeyValue<Long, Most> window : closed) {
        for (long auction : window.value.auctions) {
          Row row = new Row(auction, window.value.bids, window.key - SIZE_MS);
          context().forward(new Record<>(null, row, timestamp));
        }
        windows.delete(window.key);
      }
    }
  }

  private static ProcessorSupplier<Long, Timed<Most>, Object, Row> compare(
      TopologyContext topology) {
    return new Supplied<>(
        () -> new Compare(topology.partitions),
        Set.of(
            WindowProcessor.watermarks(topology, Compare.NAME),
            topology.store(Compare.NAME, Nexmark.ID, Most.SERDE)));
  }
}
