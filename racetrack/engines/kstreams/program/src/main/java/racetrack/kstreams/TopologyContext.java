package racetrack.kstreams;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Collects the parts of a topology: the settings, the stores, and the topics that the topology
 * writes.
 */
final class TopologyContext {
  private static final StreamPartitioner<Object, Object> TO_ALL =
      (topic, key, value, partitions) -> Optional.of(allOf(partitions));

  final StreamsBuilder builder = new StreamsBuilder();
  final Settings settings;
  /**
   * Number of partitions of the main topic, and of all internal topics that are partitioned like
   * it.
   */
  final int partitions;

  private final Debezium debezium;
  private final Set<String> outputs = new LinkedHashSet<>();
  private final Set<String> appended = new LinkedHashSet<>();
  private final List<KStream<String, Counts>> counted = new ArrayList<>();
  private String summary;

  TopologyContext(Settings settings, int partitions) {
    this.settings = settings;
    this.partitions = partitions;
    debezium = new Debezium(settings.registry());
  }

  /** The topology; some properties, such as topology.optimization, change it. */
  Topology build(Properties properties) {
    return builder.build(properties);
  }

  Set<String> outputs() {
    return outputs;
  }

  /** Those of the outputs whose rows have no key: they are never replaced. */
  Set<String> appended() {
    return appended;
  }

  /**
   * The topic of the summary view; without one, all outputs. A first row in one of these topics
   * shows that all views are ready.
   */
  Set<String> firstWritten() {
    return summary == null ? outputs : Set.of(summary);
  }

  /**
   * The changes of one of MySQL's tables. The value is the row after the change; null if it was
   * deleted.
   */
  <K, V> KStream<K, V> changes(String topic, Function<Object, K> key, Class<V> row) {
    return read(topic, Consumed.with(debezium.key(key), debezium.row(row)));
  }

  /**
   * The events of the main topic. All have the same key, so that `countProgress` can count those of
   * a task without sending them through a topic.
   */
  <V> KStream<Integer, V> events(String topic, Serde<V> value) {
    return read(topic, Consumed.with(Compact.unkeyed(0), value));
  }

  /** The messages of a topic. */
  <K, V> KStream<K, V> read(String topic, Consumed<K, V> as) {
    return builder.stream(settings.cluster().topic(topic), as);
  }

  /**
   * Writes a view to its topic. A processor that maintains several views forwards each row to the
   * child with the name of the row's view.
   */
  void write(KStream<?, ?> rows, String view) {
    writeTo(rows, topicOf(view), view);
  }

  /** Adds rows to the topic of a view, without keys. */
  void append(KStream<?, ?> rows, String view) {
    appended.add(topicOf(view));
    write(rows.selectKey((key, row) -> null), view);
  }

  @SuppressWarnings("unchecked")
  void writeTo(KStream<?, ?> rows, String topic, String name) {
    outputs.add(topic);
    Produced<Object, Object> asJson = Produced.with(Json.written(), Json.written());
    ((KStream<Object, Object>) rows).to(settings.cluster().topic(topic), asJson.withName(name));
  }

  /** Partitions rows by key, through an internal topic. */
  <K, V> Repartitioned<K, V> byKey(String name, Serde<K> key, Serde<V> value) {
    return Repartitioned.with(key, value).withName(name).withNumberOfPartitions(partitions);
  }

  /** Partitions rows by key, and sends every watermark to every task. */
  <K, V> Repartitioned<K, Timed<V>> byKeyWithWatermarks(String name, Serde<K> key, Serde<V> row) {
    return byKey(name, key, Timed.serde(row))
        .withStreamPartitioner(
            (topic, rowKey, timed, partitions) ->
                timed.isWatermark() ? Optional.of(allOf(partitions)) : Optional.empty());
  }

  /** Sends every row to every task. */
  <K, V> Repartitioned<K, V> toAll(String name, Serde<K> key, Serde<V> value) {
    return byKey(name, key, value).withStreamPartitioner(TO_ALL::partitions);
  }

  /** Sends every row to one task. */
  <K, V> Repartitioned<K, V> toOne(String name, Serde<K> key, Serde<V> value) {
    return byKey(name, key, value).withNumberOfPartitions(1);
  }

  /** A store for operators of the DSL, of the kind that the settings define. */
  <K, V> Materialized<K, V, KeyValueStore<Bytes, byte[]>> table(
      String name, Serde<K> key, Serde<V> value) {
    Materialized<K, V, KeyValueStore<Bytes, byte[]>> store = Materialized.as(name);
    store =
        store
            .withKeySerde(key)
            .withValueSerde(value)
            .withCachingEnabled()
            .withStoreType(
                settings.inMemory()
                    ? Materialized.StoreType.IN_MEMORY
                    : Materialized.StoreType.ROCKS_DB);
    return settings.changelog() ? store : store.withLoggingDisabled();
  }

  /** As `table`, without a cache; see `uncachedStore`. */
  <K, V> Materialized<K, V, KeyValueStore<Bytes, byte[]>> uncachedTable(
      String name, Serde<K> key, Serde<V> value) {
    return table(name, key, value).withCachingDisabled();
  }

  /**
   * A store with a cache, for a processor: if a key is changed several times between two commits,
   * only its last value is written.
   */
  <K, V> StoreBuilder<KeyValueStore<K, V>> store(String name, Serde<K> key, Serde<V> value) {
    return uncachedStore(name, key, value).withCachingEnabled();
  }

  /**
   * A store without a cache, for a processor that hardly ever changes a key again. In the cache, a
   * row gives way only to rows of its own store, so such rows would take the room of other stores.
   */
  <K, V> StoreBuilder<KeyValueStore<K, V>> uncachedStore(
      String name, Serde<K> key, Serde<V> value) {
    StoreBuilder<KeyValueStore<K, V>> store =
        Stores.keyValueStoreBuilder(
            settings.inMemory()
                ? Stores.inMemoryKeyValueStore(name)
                : Stores.persistentKeyValueStore(name),
            key,
            value);
    return settings.changelog() ? store : store.withLoggingDisabled();
  }

  /**
   * A record whenever Kafka Streams commits after it has processed such events. A processor that is
   * given both can work once for all events of a commit: what it forwards and stores then is part
   * of the commit.
   */
  <K, V> KStream<K, Long> commits(String name, KStream<K, V> events) {
    return events
        .groupByKey()
        .count(table("commits-of-" + name, Compact.<K>unkeyed(null), Serdes.Long()))
        .toStream();
  }

  /** Counts the events that reach this stage; see `Progress`. */
  <K, E extends Progress.Event> void countProgress(String stage, KStream<K, E> done) {
    KStream<K, Counts> counts =
        done.groupByKey()
            .aggregate(
                () -> Counts.none(partitions),
                (key, event, before) -> before.add(event),
                table("counted-" + stage, Compact.<K>unkeyed(null), Counts.SERDE))
            .toStream();
    counted.add(counts.process(() -> new Progress.Sign<>(stage)));
  }

  /** Adds up the counts of all stages, and writes the two progress views. */
  void writeProgress(String progress, String summary) {
    KStream<Object, Object> sums =
        counted.stream()
            .reduce(KStream::merge)
            .orElseThrow()
            .repartition(toOne("counts", Serdes.String(), Counts.SERDE))
            .process(new Progress.SumSupplier(this, progress, summary));
    write(sums, progress);
    write(sums, summary);
    this.summary = topicOf(summary);
  }

  private static String topicOf(String view) {
    return "kstreams." + view;
  }

  private static Set<Integer> allOf(int partitions) {
    return IntStream.range(0, partitions).boxed().collect(Collectors.toSet());
  }
}
