package racetrack.upsert;

import static java.util.stream.Collectors.toCollection;
import static java.util.stream.Collectors.toMap;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;

/**
 * The input topics of a program, for which it waits, and its output topics, which it creates. All
 * names are given without the cluster's prefix.
 */
public class Topics implements AutoCloseable {
  private static final Duration THERE_WITHIN = Duration.ofSeconds(60);
  private static final long LOOK_EVERY_MS = 100;
  /** Deletes all records up to the end of a partition. */
  private static final RecordsToDelete ALL = RecordsToDelete.beforeOffset(-1);
  /**
   * `compact`: only the last message of each key is needed, so the broker may drop the others.
   * `delete`: allows `empty` to delete records; nothing else deletes any. Messages have the
   * broker's time, at which they could be read. A reader has a minute to see that a row was
   * deleted.
   */
  private static final Map<String, String> CONFIG =
      Map.of(
          "cleanup.policy", "compact,delete",
          "retention.ms", "-1",
          "retention.bytes", "-1",
          "segment.bytes", Integer.toString(32 << 20),
          "delete.retention.ms", "60000",
          "message.timestamp.type", "LogAppendTime");

  /** Rows without keys, which a compacted topic refuses. They stay as long as the main topic's. */
  private static final Map<String, String> APPENDED =
      Map.of(
          "cleanup.policy", "delete",
          "segment.bytes", CONFIG.get("segment.bytes"),
          "message.timestamp.type", CONFIG.get("message.timestamp.type"));

  protected final Admin admin;
  protected final Cluster cluster;

  public Topics(Cluster cluster) {
    this.cluster = cluster;
    admin = Admin.create(Map.copyOf(cluster.client()));
  }

  public void waitFor(Collection<String> names) throws InterruptedException, ExecutionException {
    long giveUp = System.nanoTime() + THERE_WITHIN.toNanos();
    Set<String> missing = names.stream().map(cluster::topic).collect(toCollection(TreeSet::new));
    while (true) {
      missing.removeAll(admin.listTopics().names().get());
      if (missing.isEmpty()) {
        return;
      }
      if (System.nanoTime() > giveUp) {
        throw new IllegalStateException("There is no topic " + String.join(", ", missing) + ".");
      }
      Thread.sleep(LOOK_EVERY_MS);
    }
  }

  /**
   * Creates those of the topics that do not exist, with one partition each. Rows of those in
   * `appended` have no keys.
   */
  public void make(Collection<String> names, Collection<String> appended)
      throws InterruptedException, ExecutionException {
    Set<String> there = admin.listTopics().names().get();
    List<NewTopic> fresh =
        names.stream()
            .filter(name -> !there.contains(cluster.topic(name)))
            .map(
                name ->
                    new NewTopic(cluster.topic(name), 1, cluster.replicas())
                        .configs(appended.contains(name) ? APPENDED : CONFIG))
            .toList();
    try {
      admin.createTopics(fresh).all().get();
    } catch (ExecutionException error) {
      // Another replica may have created them since.
      if (!(error.getCause() instanceof TopicExistsException)) {
        throw error;
      }
    }
    waitFor(names);
  }

  /**
   * Empties those of the topics that exist. Otherwise, a program without earlier state would never
   * delete the rows in them.
   */
  public void empty(Collection<String> names) throws InterruptedException, ExecutionException {
    Set<String> there = admin.listTopics().names().get();
    Map<TopicPartition, RecordsToDelete> old =
        names.stream()
            .map(cluster::topic)
            .filter(there::contains)
            .map(name -> new TopicPartition(name, 0))
            .collect(toMap(Function.identity(), each -> ALL));
    admin.deleteRecords(old).all().get();
  }

  /** Returns how many of these topics contain a message. */
  public int written(Collection<String> names) throws InterruptedException, ExecutionException {
    int count = 0;
    for (String name : names) {
      count += isWritten(name) ? 1 : 0;
    }
    return count;
  }

  /** Returns whether the topic's only partition contains a message. */
  public boolean isWritten(String topic) throws InterruptedException, ExecutionException {
    TopicPartition partition = new TopicPartition(cluster.topic(topic), 0);
    return offsetOf(partition, OffsetSpec.latest()) > offsetOf(partition, OffsetSpec.earliest());
  }

  private long offsetOf(TopicPartition partition, OffsetSpec which)
      throws InterruptedException, ExecutionException {
    return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
  }

  @Override
  public void close() {
    admin.close();
  }
}
