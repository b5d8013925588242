package racetrack.kstreams;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import racetrack.kstreams.Compact.Pair;
import racetrack.kstreams.Nexmark.Event;

/** Persons who opened an auction in the window of ten seconds in which they registered. */
final class Q8 {
  private static final long SIZE_MS = 10_000;

  private Q8() {}

  static void connect(Nexmark nexmark) {
    nexmark.topology.append(
        nexmark
            .timed("q8-rows", SIZE_MS, Side::of, Side.SERDE)
            .process(join(nexmark.topology)),
        "q8");
  }

  record Row(long id, String name, long stime) {}

  /** The name of a person who registered; or null: the person opened an auction. */
  record Side(String name) {
    static final Serde<Side> SERDE =
        Compact.ofRow(
            (out, side) -> Compact.write(out, side.name), in -> new Side(Compact.readText(in)));

    /** The side of an event, by person; null if it is a bid. */
    static KeyValue<Long, Side> of(Event event) {
      if (event.person() != null) {
        return KeyValue.pair(event.person().id(), new Side(event.person().name()));
      }
      return event.auction() == null
          ? null
          : KeyValue.pair(event.auction().seller(), new Side(null));
    }
  }

  /** Joins the persons and the sellers of each window when it closes. */
  private static final class JoinWindows extends WindowProcessor<Side, Object, Row> {
    private static final String NAME = "q8";
    private static final String PERSONS = "q8-persons";
    private static final String SELLERS = "q8-sellers";

    /** Start of a window, and person → name. */
    private KeyValueStore<Pair, String> persons;
    /** Start of a window, and seller → nothing that is read. */
    private KeyValueStore<Pair, Long> sellers;

    JoinWindows(int inputs) {
      super(NAME, inputs);
    }

    @Override
    public void init(ProcessorContext<Object, Row> context) {
      super.init(context);
      persons = context.getStateStore(PERSONS);
      sellers = context.getStateStore(SELLERS);
    }

    @Override
    void keep(long person, long atMs, Side side) {
      Pair key = new Pair(atMs - atMs % SIZE_MS, person);
      if (side.name == null) {
        sellers.put(key, person);
      } else {
        persons.put(key, side.name);
      }
    }

    @Override
    void close(long fromMs, long toMs, long timestamp) {
      for (KeyValue<Pair, String> person : removed(persons, toMs)) {
        if (sellers.get(person.key) != null) {
          long start = person.key.first();
          Row row = new Row(person.key.second(), person.value, start);
          context().forward(new Record<>(null, row, timestamp));
        }
      }
      removed(sellers, toMs);
    }

    /** Removes the rows of windows that end at `toMs` or before, and returns them. */
    private static <V> List<KeyValue<Pair, V>> removed(KeyValueStore<Pair, V> from, long toMs) {
      List<KeyValue<Pair, V>> found = new ArrayList<>();
      // The last such window starts before this time.
      long before = toMs - SIZE_MS + 1;
      try (var rows = from.range(new Pair(0, 0), new Pair(before, 0))) {
        rows.forEachRemaining(found::add);
      }
      found.forEach(row -> from.delete(row.key));
      return found;
    }
  }

  private static ProcessorSupplier<Long, Timed<Side>, Object, Row> join(TopologyContext topology) {
    return new Supplied<>(
        () -> new JoinWindows(topology.partitions),
        Set.of(
            WindowProcessor.watermarks(topology, JoinWindows.NAME),
            topology.store(JoinWindows.PERSONS, Pair.SERDE, Serdes.String()),
            topology.store(JoinWindows.SELLERS, Pair.SERDE, Nexmark.ID)));
  }
}
