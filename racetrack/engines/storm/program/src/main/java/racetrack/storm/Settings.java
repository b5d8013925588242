package racetrack.storm;

import java.io.Serializable;
import java.util.Map;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import racetrack.program.Environment;

/** Settings from the environment; the `.env` of this engine describes them. */
record Settings(
    String kafka,
    String redisHost,
    int redisPort,
    ProcessingGuarantee guarantee,
    int parallelism,
    int flushMs,
    int commitMs,
    Map<String, String> properties,
    String readyFile)
    implements Serializable {

  static Settings from(Map<String, String> variables) {
    Environment env = new Environment(variables);
    return new Settings(
        env.text("KAFKA_BOOTSTRAP"),
        env.text("REDIS_HOST"),
        env.number("REDIS_PORT"),
        ProcessingGuarantee.valueOf(env.text("STORM_GUARANTEE").toUpperCase()),
        env.number("STORM_PARALLELISM"),
        env.number("STORM_FLUSH_MS"),
        env.number("STORM_COMMIT_MS"),
        env.properties("STORM_PROPERTIES"),
        env.text("READY_FILE"));
  }

  boolean tracksTuples() {
    return guarantee == ProcessingGuarantee.AT_LEAST_ONCE;
  }
}
