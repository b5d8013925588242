package racetrack.kstreams;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import racetrack.kstreams.Compact.Pair;

/**
 * Joins rows of which there is one per id, such as auctions, with all rows that refer to them, such
 * as bids. Either may come first: a row that refers to an unknown id waits for it.
 *
 * <p>Kafka Streams' own join of a stream with a table would drop such rows, and its join of tables
 * by a foreign key would send several messages through Kafka for each row.
 *
 * @param join returns null if the two have no joined row
 */
record Join<T, W, J>(
    TopologyContext topology,
    String name,
    Serde<T> target,
    Serde<W> referring,
    ValueJoiner<T, W, J> join)
    implements FixedKeyProcessorSupplier<Long, Object, J> {

  /** Tells the two kinds of rows in the input of `Processor` apart. */
  private record Target<T>(T row) {}

  /** Returns the joined rows. Both streams are keyed by the id. */
  KStream<Long, J> of(KStream<Long, T> targets, KStream<Long, W> references) {
    KStream<Long, Object> known =
        targets
            .repartition(topology.byKey(name + "-targets", Nexmark.ID, target))
            .mapValues(row -> new Target<>(row));
    KStream<Long, Object> all =
        references
            .repartition(topology.byKey(name + "-references", Nexmark.ID, referring))
            .mapValues(row -> row);
    return all.merge(known).processValues(this);
  }

  @Override
  public FixedKeyProcessor<Long, Object, J> get() {
    return new Processor<>(this);
  }

  @Override
  public Set<StoreBuilder<?>> stores() {
    return Set.of(
        topology.store(knownStore(), Nexmark.ID, target),
        topology.uncachedStore(waitingStore(), Pair.SERDE, referring));
  }

  private String knownStore() {
    return name + "-known";
  }

  private String waitingStore() {
    return name + "-waiting";
  }

  private static final class Processor<T, W, J>
      extends ContextualFixedKeyProcessor<Long, Object, J> {
    private final Join<T, W, J> of;
    private KeyValueStore<Long, T> known;
    /** Id, and the offset of the row's message, which no other row of this task has. */
    private KeyValueStore<Pair, W> waiting;

    Processor(Join<T, W, J> of) {
      this.of = of;
    }

    @Override
    public void init(FixedKeyProcessorContext<Long, J> context) {
      super.init(context);
      known = context.getStateStore(of.knownStore());
      waiting = context.getStateStore(of.waitingStore());
    }

    @Override
    @SuppressWarnings("unchecked")
    public void process(FixedKeyRecord<Long, Object> record) {
      if (record.value() instanceof Target<?> fresh) {
        meet((T) fresh.row(), record);
      } else {
        T target = known.get(record.key());
        if (target == null) {
          long offset = context().recordMetadata().orElseThrow().offset();
          waiting.put(new Pair(record.key(), offset), (W) record.value());
        } else {
          show(target, (W) record.value(), record);
        }
      }
    }

    /** Keeps a row with a new id, and joins it with the rows that wait for it. */
    private void meet(T target, FixedKeyRecord<Long, Object> record) {
      known.put(record.key(), target);
      List<KeyValue<Pair, W>> met = new ArrayList<>();
      Pair first = new Pair(record.key(), 0);
      try (var rows = waiting.range(first, new Pair(record.key(), Long.MAX_VALUE))) {
        rows.forEachRemaining(met::add);
      }
      for (KeyValue<Pair, W> row : met) {
        waiting.delete(row.key);
        show(target, row.value, record);
      }
    }

    private void show(T target, W row, FixedKeyRecord<Long, Object> record) {
      J joined = of.join.apply(target, row);
      if (joined != null) {
        context().forward(record.withValue(joined));
      }
    }
  }
}
