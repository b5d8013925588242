package racetrack.kstreams;

import java.nio.file.Files;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KafkaStreams.State;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import racetrack.upsert.Folders;

/**
 * Maintains the views of one workload, each in a topic of its own, until the program is stopped.
 *
 * <p>After a kill, KSTREAMS_AFTER_A_KILL decides: the program resumes from its last commit, or
 * begins anew: it reads all input from the beginning, as a new application.
 */
public final class Main {
  private static final Logger LOG = LoggerFactory.getLogger(Main.class);
  private static final long LOOK_EVERY_MS = 100;

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    Prepared prepared = null;
    try {
      prepared = prepare(Settings.from(System.getenv()));
    } catch (IllegalArgumentException | ConfigException error) {
      // A setting or a property can't be used: the message names it.
      LOG.error(error.getMessage());
      Runtime.getRuntime().halt(1);
    }
    run(prepared.streams(), prepared.settings(), prepared.firstWritten());
  }

  /** A program that can be started. */
  private record Prepared(KafkaStreams streams, Settings settings, Set<String> firstWritten) {}

  private static Prepared prepare(Settings settings) throws Exception {
    TopologyContext topology;
    String applicationId;
    try (TopologyTopics topics = new TopologyTopics(settings.cluster())) {
      topology = build(settings, topics);
      if (settings.resumes()) {
        applicationId = topics.applicationId(settings.workload());
      } else {
        applicationId = topics.newApplicationId(settings.workload());
        Folders.remove(settings.stateFolder());
        topics.removeInternalOnesOf(settings.workload());
        topics.empty(topology.outputs());
      }
      topics.make(topology.outputs(), topology.appended());
    }
    Properties properties = settings.forStreams(applicationId);
    KafkaStreams streams = new KafkaStreams(topology.build(properties), properties);
    return new Prepared(streams, settings, topology.firstWritten());
  }

  private static TopologyContext build(Settings settings, TopologyTopics topics) throws Exception {
    switch (settings.workload()) {
      case "shop":
        topics.waitFor(ShopTopology.INPUTS);
        return ShopTopology.build(settings, topics.partitionsOf(ShopTopology.PAGEVIEWS));
      case "ads":
        topics.waitFor(AdsTopology.INPUTS);
        return AdsTopology.build(settings, topics.partitionsOf(AdsTopology.EVENTS));
      case "nexmark":
        topics.waitFor(Nexmark.INPUTS);
        return Nexmark.build(settings, topics.partitionsOf(Nexmark.EVENTS));
      default:
        throw new IllegalArgumentException(
            "WORKLOAD=" + settings.workload() + ": there are topologies for shop, ads and nexmark.");
    }
  }

  /**
   * Runs the topology. An error in any thread ends the program, so that no measurement continues
   * with an engine that has partly failed.
   */
  private static void run(KafkaStreams streams, Settings settings, Set<String> firstWritten)
      throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    streams.setUncaughtExceptionHandler(
        error -> {
          LOG.error("the topology failed", error);
          return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    streams.setStateListener(
        (now, before) -> {
          if (now == State.ERROR || now == State.NOT_RUNNING) {
            ended.countDown();
          }
        });
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
    try (TopologyTopics topics = new TopologyTopics(settings.cluster())) {
      while (!(streams.state() == State.RUNNING && topics.written(firstWritten) > 0)) {
        if (ended.await(LOOK_EVERY_MS, TimeUnit.MILLISECONDS)) {
          break;
        }
      }
    }
    if (ended.getCount() > 0) {
      Files.createFile(settings.readyFile());
    }
    ended.await();
    if (streams.state() != State.NOT_RUNNING) {
      // Not exit(): its shutdown hook would wait for threads that have failed.
      Runtime.getRuntime().halt(1);
    }
  }
}
