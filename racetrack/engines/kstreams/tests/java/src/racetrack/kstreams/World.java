package racetrack.kstreams;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import racetrack.upsert.Cluster;
import racetrack.upsert.Stage;

/** A topology without Kafka. */
final class World extends Stage {
  private final TopologyTestDriver driver;
  /** View → key → row. */
  private final Map<String, Map<String, JsonNode>> views = new HashMap<>();

  /** As it is delivered, or as far from that as its settings go: no view may hold anything else. */
  enum Kind {
    DELIVERED,
    OTHERWISE
  }

  World(BiFunction<Settings, Integer, TopologyContext> topology, Kind kind) throws IOException {
    this(topology, kind, 1, 0);
  }

  /** With these queries; events come from the first partition only, however many there are. */
  World(
      BiFunction<Settings, Integer, TopologyContext> topology,
      Kind kind,
      int partitions,
      long watermarkDelayMs,
      String... queries)
      throws IOException {
    Path state = Files.createTempDirectory("kstreams-state");
    boolean delivered = kind == Kind.DELIVERED;
    Settings settings =
        new Settings(
            Cluster.at("nowhere:1"), registry.url(), "test", List.of(queries), watermarkDelayMs, 100,
            delivered ? "at_least_once" : "exactly_once_v2", 1, delivered ? 10 << 20 : 0, 5,
            !delivered, delivered, true,
            delivered ? Map.of() : Map.of("topology.optimization", "all"),
            "only", state, state.resolve("ready"));
    Properties properties = settings.forStreams("test");
    driver =
        new TopologyTestDriver(
            topology.apply(settings, partitions).build(properties),
            properties,
            Instant.ofEpochMilli(NOW_MS));
  }

  @Override
  protected void send(String topic, int partition, byte[] key, byte[] value) {
    driver
        .createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer())
        .pipeInput(key, value, Instant.ofEpochMilli(NOW_MS));
  }

  void pass(Duration time) {
    driver.advanceWallClockTime(time);
  }

  @Override
  public List<JsonNode> rows(String view) {
    Map<String, JsonNode> table = views.computeIfAbsent(view, name -> new HashMap<>());
    output(view)
        .readKeyValuesToList()
        .forEach(
            each -> {
              if (each.value == null) {
                table.remove(each.key);
              } else {
                table.put(each.key, parsed(each.value));
              }
            });
    return new ArrayList<>(table.values());
  }

  /** The rows without keys that were added to a view since the last call. */
  List<JsonNode> added(String view) {
    return output(view).readKeyValuesToList().stream()
        .map(
            each -> {
              if (each.key != null) {
                throw new AssertionError(view + " has a key: " + each);
              }
              return parsed(each.value);
            })
        .toList();
  }

  /** The names of the topics between the stages that were written to. */
  Set<String> innerTopics() {
    String begin = "test-";
    String end = "-repartition";
    return driver.producedTopicNames().stream()
        .filter(topic -> topic.startsWith(begin) && topic.endsWith(end))
        .map(topic -> topic.substring(begin.length(), topic.length() - end.length()))
        .collect(Collectors.toSet());
  }

  private TestOutputTopic<String, String> output(String view) {
    return driver.createOutputTopic(
        "kstreams." + view, new StringDeserializer(), new StringDeserializer());
  }

  @Override
  public void close() throws Exception {
    driver.close();
    super.close();
  }
}
