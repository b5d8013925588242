package racetrack.kstreams;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.StreamsConfig;
import racetrack.program.Environment;
import racetrack.upsert.Cluster;

/** Settings from the environment; the `.env` of this engine describes them. */
record Settings(
    Cluster cluster,
    String registry,
    String workload,
    List<String> queries,
    long watermarkDelayMs,
    int commitMs,
    String guarantee,
    int threads,
    long cacheBytes,
    int lingerMs,
    boolean inMemory,
    boolean changelog,
    boolean resumes,
    Map<String, String> properties,
    String instance,
    Path stateFolder,
    Path readyFile) {

  private static final int MESSAGE_MAX_BYTES = 9 << 20;
  /** Prefix of the properties of clients → all properties of these clients. */
  private static final Map<String, Set<String>> CLIENTS =
      Map.of(
          StreamsConfig.CONSUMER_PREFIX, ConsumerConfig.configNames(),
          StreamsConfig.MAIN_CONSUMER_PREFIX, ConsumerConfig.configNames(),
          StreamsConfig.RESTORE_CONSUMER_PREFIX, ConsumerConfig.configNames(),
          StreamsConfig.GLOBAL_CONSUMER_PREFIX, ConsumerConfig.configNames(),
          StreamsConfig.PRODUCER_PREFIX, ProducerConfig.configNames(),
          StreamsConfig.ADMIN_CLIENT_PREFIX, AdminClientConfig.configNames());

  static Settings from(Map<String, String> variables) {
    Environment env = new Environment(variables);
    return new Settings(
        Cluster.from(env),
        env.text("SCHEMA_REGISTRY_URL"),
        env.text("WORKLOAD"),
        List.of(env.text("NEXMARK_QUERIES", "").split(",")),
        Long.parseLong(env.text("NEXMARK_WATERMARK_DELAY_MS", "0")),
        env.number("KSTREAMS_COMMIT_MS"),
        env.text("KSTREAMS_GUARANTEE"),
        env.number("KSTREAMS_THREADS"),
        (long) env.number("KSTREAMS_CACHE_MB") << 20,
        env.number("KSTREAMS_LINGER_MS"),
        env.text("KSTREAMS_STORE").equals("in_memory"),
        env.text("KSTREAMS_CHANGELOG").equals("on"),
        env.text("KSTREAMS_AFTER_A_KILL").equals("resume"),
        requireKnown(env.properties("KSTREAMS_PROPERTIES")),
        env.text("RACETRACK_INSTANCE", "only"),
        Path.of(env.text("STATE_FOLDER")),
        Path.of(env.text("READY_FILE")));
  }

  /** Ends the program if there is no such property: Kafka Streams would ignore it. */
  private static Map<String, String> requireKnown(Map<String, String> properties) {
    for (String name : properties.keySet()) {
      boolean isKnown =
          name.startsWith(StreamsConfig.TOPIC_PREFIX)
              || StreamsConfig.configDef().names().contains(name)
              || CLIENTS.entrySet().stream()
                  .anyMatch(each -> each.getValue().contains(without(each.getKey(), name)));
      if (!isKnown) {
        throw new IllegalArgumentException(
            "KSTREAMS_PROPERTIES: Kafka Streams and its clients have no property " + name + ".");
      }
    }
    return properties;
  }

  private static String without(String prefix, String name) {
    return name.startsWith(prefix) ? name.substring(prefix.length()) : name;
  }

  /** The configuration of Kafka Streams where it differs from the defaults. */
  Properties forStreams(String applicationId) {
    Properties properties = new Properties();
    properties.putAll(cluster.client());
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, applicationId);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, (int) cluster.replicas());
    properties.put(StreamsConfig.STATE_DIR_CONFIG, stateFolder.toString());
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitMs);
    properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, threads);
    properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
    properties.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), lingerMs);
    // A row may be as large as the broker accepts.
    properties.put(
        StreamsConfig.producerPrefix(ProducerConfig.MAX_REQUEST_SIZE_CONFIG), MESSAGE_MAX_BYTES);
    // A task processes an input without waiting for its other inputs. Waiting would process events
    // in the order of their timestamps, but no view here depends on that order: the result of a
    // join does not depend on which side arrives first.
    properties.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, StreamsConfig.MAX_TASK_IDLE_MS_DISABLED);
    properties.put(
        StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, NameUndecodable.class);
    properties.put(
        StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, NameUnprocessable.class);
    properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    // Kafka recognizes a restarted replica by this id. Otherwise the replica's tasks would wait 45
    // s, until the group removes the old member.
    properties.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, instance);
    properties.putAll(this.properties);
    return properties;
  }
}
