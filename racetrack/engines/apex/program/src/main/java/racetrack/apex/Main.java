package racetrack.apex;

import com.datatorrent.api.LocalMode;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import racetrack.redis.RedisSink;

/**
 * Runs the application in Apex' local mode, where all operators are in this process, until the
 * process is ended.
 */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    Settings settings = Settings.from(System.getenv());
    LoopbackEventLoop.install();
    LocalMode local = LocalMode.newInstance();
    local.prepareDAG(new AdsApplication(settings), new Configuration(false));
    local.getController().runAsync();
    RedisSink.awaitProgress(settings.redisHost(), settings.redisPort());
    Files.createFile(Path.of(settings.readyFile()));
  }
}
