package racetrack.kstreams;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;

/**
 * Keeps the rows of windows, and closes windows whose ends the watermarks of all inputs have
 * passed. An input is a task that sends to this one.
 */
abstract class WindowProcessor<V, K, R> extends ContextualProcessor<Long, Timed<V>, K, R> {
  private final String name;
  private final int inputs;
  /** Input → its last watermark. */
  private KeyValueStore<Integer, Long> watermarks;

  /** `name` is the prefix of the names of its stores. */
  WindowProcessor(String name, int inputs) {
    this.name = name;
    this.inputs = inputs;
  }

  /** The store that each such processor needs. */
  static StoreBuilder<?> watermarks(TopologyContext topology, String name) {
    return topology.store(name + "-watermarks", Serdes.Integer(), Serdes.Long());
  }

  /** Adds a row to the windows that contain this time. */
  abstract void keep(long key, long atMs, V row);

  /** Forwards the results of all windows that end after `fromMs` and not after `toMs`. */
  abstract void close(long fromMs, long toMs, long timestamp);

  @Override
  public void init(ProcessorContext<K, R> context) {
    super.init(context);
    watermarks = context.getStateStore(name + "-watermarks");
  }

  @Override
  public void process(Record<Long, Timed<V>> record) {
    Timed<V> timed = record.value();
    if (!timed.isWatermark()) {
      keep(record.key(), timed.atMs(), timed.row());
      return;
    }
    long before = leastWatermark();
    watermarks.put(timed.input(), Math.max(timed.atMs(), watermarkOf(timed.input())));
    long now = leastWatermark();
    if (now > before) {
      close(before, now, record.timestamp());
    }
  }

  private long leastWatermark() {
    long least = Long.MAX_VALUE;
    for (int input = 0; input < inputs; input++) {
      least = Math.min(least, watermarkOf(input));
    }
    return least;
  }

  /** 0 if the input has sent none yet. */
  private long watermarkOf(int input) {
    Long atMs = watermarks.get(input);
    return atMs == null ? 0 : atMs;
  }
}
