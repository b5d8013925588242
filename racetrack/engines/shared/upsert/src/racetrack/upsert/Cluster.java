package racetrack.upsert;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.CommonClientConfigs;
import racetrack.program.Environment;

/**
 * A Kafka cluster: the properties of its clients, the prefix of all topic names, and the
 * replication factor of new topics (-1: the broker's default).
 */
public record Cluster(Map<String, String> client, String prefix, short replicas) {
  public static Cluster at(String servers) {
    Map<String, String> client = Map.of(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, servers);
    return new Cluster(client, "", (short) 1);
  }

  /** Reads the variables that `racetrack/kafka_endpoint.py` describes. */
  public static Cluster from(Environment env) {
    Map<String, String> client = new HashMap<>();
    try {
      String config = env.text("KAFKA_JAVA_CONFIG", "{}");
      var type = new TypeReference<Map<String, String>>() {};
      client.putAll(new ObjectMapper().readValue(config, type));
    } catch (JsonProcessingException error) {
      // Do not pass on the cause: its message would contain secrets.
      throw new IllegalArgumentException("KAFKA_JAVA_CONFIG is no JSON object of texts.");
    }
    client.put(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, env.text("KAFKA_BOOTSTRAP"));
    return new Cluster(
        client,
        env.text("KAFKA_TOPIC_PREFIX", ""),
        Short.parseShort(env.text("KAFKA_REPLICATION_FACTOR", "1")));
  }

  /** Returns the full name of a topic or consumer group, with the prefix. */
  public String topic(String name) {
    return prefix + name;
  }

  /** Leaves out the properties, because they may contain secrets. */
  @Override
  public String toString() {
    return client.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG);
  }
}
