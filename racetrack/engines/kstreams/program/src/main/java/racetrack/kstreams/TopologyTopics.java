package racetrack.kstreams;

import java.util.List;
import java.util.concurrent.ExecutionException;
import racetrack.upsert.Cluster;
import racetrack.upsert.Topics;

/** The topics around a topology, and those that Kafka Streams makes for itself. */
final class TopologyTopics extends Topics {
  TopologyTopics(Cluster cluster) {
    super(cluster);
  }

  /** Its internal topics and its consumer group begin with it, so that all are met again. */
  String applicationId(String workload) {
    return prefixOf(workload) + "kept";
  }

  /** One whose topics and group are never met again. */
  String newApplicationId(String workload) {
    return prefixOf(workload) + System.currentTimeMillis();
  }

  int partitionsOf(String topic) throws InterruptedException, ExecutionException {
    String name = cluster.topic(topic);
    var described = admin.describeTopics(List.of(name)).allTopicNames().get();
    return described.get(name).partitions().size();
  }

  /** Changelogs and the like of an earlier start would only take up the broker's memory. */
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
