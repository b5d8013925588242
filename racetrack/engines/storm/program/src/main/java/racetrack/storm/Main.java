package racetrack.storm;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import racetrack.redis.RedisSink;

/**
 * Runs the topology on a local cluster, where all of Storm is in this process, until the process is
 * ended.
 */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    Settings settings = Settings.from(System.getenv());
    // Before the cluster starts: its threads would keep the process running after an error.
    Config config = AdsTopology.config(settings);
    LocalCluster cluster = new LocalCluster(Zookeeper.HOST, (long) Zookeeper.start());
    cluster.submitTopology(AdsTopology.NAME, config, AdsTopology.build(settings));
    RedisSink.awaitProgress(settings.redisHost(), settings.redisPort());
    Files.createFile(Path.of(settings.readyFile()));
  }
}
