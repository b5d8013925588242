package racetrack.spark;

import java.nio.file.Files;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.apache.spark.sql.streaming.StreamingQueryManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import racetrack.upsert.Folders;
import racetrack.upsert.Topics;

/**
 * Maintains the views of one workload, each in a topic of its own, until the program is stopped.
 *
 * <p>After a kill, SPARK_AFTER_A_KILL decides: the program resumes from its checkpoints, or reads
 * all input again. It also reads all input again if an executor was lost that kept state in a
 * folder of its own.
 */
public final class Main {
  private static final Logger LOG = LoggerFactory.getLogger(Main.class);
  private static final long LOOK_EVERY_MS = 100;
  private static final String LOST = "CANNOT_LOAD_STATE_STORE";

  private Main() {}

  public static void main(String[] arguments) {
    try {
      Settings settings = Settings.from(System.getenv());
      while (true) {
        keepUntilStateIsLost(settings);
        LOG.warn("state was lost with an executor, so all input is read again");
        Folders.remove(settings.stateFolder());
      }
    } catch (Exception error) {
      LOG.error("it failed", error);
    }
    // A query ends only if it fails. Not exit(): its shutdown hooks would wait for the other
    // queries.
    Runtime.getRuntime().halt(1);
  }

  private static void keepUntilStateIsLost(Settings settings) throws Exception {
    Views views = viewsOf(settings);
    try (Topics topics = new Topics(settings.cluster())) {
      topics.waitFor(views.inputs());
      List<String> outputs =
          Stream.concat(views.views().stream().map(Kafka::topicOf), views.furtherTopics().stream())
              .toList();
      // Without checkpoints, Spark would never delete earlier rows from the topics, so empty them.
      if (!settings.resumes() || !Files.exists(settings.stateFolder())) {
        Folders.remove(settings.stateFolder());
        topics.empty(outputs);
      }
      topics.make(outputs, views.appended().stream().map(Kafka::topicOf).toList());
    }
    Kafka kafka = new Kafka(Session.open(settings), settings);
    try {
      run(views, kafka);
    } catch (StreamingQueryException error) {
      if (!String.valueOf(error.getCause()).contains(LOST)) {
        throw error;
      }
      kafka.spark().stop();
    }
  }

  private static Views viewsOf(Settings settings) {
    switch (settings.workload()) {
      case "shop":
        return new ShopViews();
      case "ads":
        return new AdsViews();
      case "nexmark":
        return new Nexmark(settings.queries());
      default:
        throw new IllegalArgumentException(
            "WORKLOAD=" + settings.workload() + ": there are views for shop, ads and nexmark.");
    }
  }

  private static void run(Views views, Kafka kafka) throws Exception {
    StreamingQueryManager running = kafka.spark().streams();
    try {
      for (var query : views.queries(kafka)) {
        query.start();
      }
      try (Topics topics = new Topics(kafka.settings().cluster())) {
        List<String> first = views.firstWritten().stream().map(Kafka::topicOf).toList();
        while (topics.written(first) < first.size()) {
          running.awaitAnyTermination(LOOK_EVERY_MS);
        }
      }
      Files.write(kafka.settings().readyFile(), new byte[0]);
      running.awaitAnyTermination();
    } finally {
      for (StreamingQuery query : running.active()) {
        query.stop();
      }
    }
  }
}
