package racetrack.kstreams;

import java.util.List;
import java.util.concurrent.ExecutionException;
import racetrack.upsert.Cluster;
import racetrack.upsert.Topics;

/** The input and output topics of a topology, and the internal topics of Kafka Streams. */
final class TopologyTopics extends Topics {
  TopologyTopics(Cluster cluster) {
    super(cluster);
  }

  /**
   * The application id that is the same at each start. The names of internal topics and of the
   * consumer group begin with it, so a restarted program finds its state again.
   */
  String applicationId(String workload) {
    return prefixOf(workload) + "kept";
  }

  /** An application id that was never used before, so that the program finds no earlier state. */
  String newApplicationId(String workload) {
    return prefixOf(workload) + System.currentTimeMillis();
  }

  int partitionsOf(String topic) throws InterruptedException, ExecutionException {
    String name = cluster.topic(topic);
    var described = admin.describeTopics(List.of(name)).allTopicNames().get();
    return described.get(name).partitions().size();
  }

  /**
   * Removes the internal topics of earlier starts, such as changelogs, which would take up the
   * broker's memory.
   */
  void removeInternalOnesOf(String workload) throws InterruptedException, ExecutionException {
    List<String> old =
        admin.listTopics().names().get().stream()
            .filter(name -> name.startsWith(prefixOf(workload)))
            .toList();
    admin.deleteTopics(old).all().get();
  }

  private String prefixOf(String workload) {
    return cluster.topic("racetrack-" + workload + "-");
  }
}
