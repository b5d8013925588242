package racetrack.spark;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import racetrack.program.Environment;
import racetrack.upsert.Cluster;

/** Settings from the environment; the `.env` of this engine describes them. */
record Settings(
    Cluster cluster,
    String registry,
    String workload,
    List<String> queries,
    int triggerMs,
    int shufflePartitions,
    int cores,
    boolean resumes,
    Map<String, String> properties,
    Path stateFolder,
    Path readyFile) {

  static Settings from(Map<String, String> variables) {
    Environment env = new Environment(variables);
    return new Settings(
        Cluster.from(env),
        env.text("SCHEMA_REGISTRY_URL"),
        env.text("WORKLOAD"),
        List.of(env.text("NEXMARK_QUERIES", "").split(",")),
        env.number("SPARK_TRIGGER_MS"),
        env.number("SPARK_SHUFFLE_PARTITIONS"),
        env.number("SPARK_CORES"),
        env.text("SPARK_AFTER_A_KILL").equals("resume"),
        env.properties("SPARK_PROPERTIES"),
        Path.of(env.text("STATE_FOLDER")),
        Path.of(env.text("READY_FILE")));
  }
}
