package racetrack.kstreams;

import java.util.List;
import java.util.concurrent.ExecutionException;
import racetrack.upsert.Topics;

/** The topics around a topology, and those that Kafka Streams makes for itself. */
final class TopologyTopics extends Topics {
  TopologyTopics(String kafka) {
    super(kafka);
  }

  /** Its internal topics and its consumer group begin with it, so that all are met again. */
  static String applicationId(String workload) {
    return prefixOf(workload) + "kept";
  }

  /** One whose topics and group are never met again. */
  static String newApplicationId(String workload) {
    return prefixOf(workload) + System.currentTimeMillis();
  }

  int partitionsOf(String topic) throws InterruptedException, ExecutionException {
    var described = admin.describeTopics(List.of(topic)).allTopicNames().get();
    return described.get(topic).partitions().size();
  }

  /** Changelogs and the like of an earlier start would only take up the broker's memory. */
  void removeInternalOnesOf(String workload) throws InterruptedException, ExecutionException {
    List<String> old =
        admin.listTopics().names().get().stream()
            .filter(name -> name.startsWith(prefixOf(workload)))
            .toList();
    admin.deleteTopics(old).all().get();
  }

  private static String prefixOf(String workload) {
    return "racetrack-" + workload + "-";
  }
}
