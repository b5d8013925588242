package racetrack.storm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.storm.Config;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/** Any property of a topology can be set, and one that Storm would ignore or refuse is named. */
class PropertiesTest {
  private static final String STRATEGY = "org.apache.storm.policy.WaitStrategyPark";

  @Test
  void aValueHasTheTypeThatStormExpects() {
    Config config =
        of(
            "topology.producer.batch.size=100 topology.debug=true topology.stats.sample.rate=0.5"
                + " topology.bolt.wait.strategy="
                + STRATEGY
                + " topology.worker.logwriter.childopts='-Da=\"b c\"'");
    assertEquals(100, config.get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE));
    assertEquals(true, config.get(Config.TOPOLOGY_DEBUG));
    assertEquals(0.5, config.get(Config.TOPOLOGY_STATS_SAMPLE_RATE));
    assertEquals(STRATEGY, config.get(Config.TOPOLOGY_BOLT_WAIT_STRATEGY));
    assertEquals("-Da=\"b c\"", config.get("topology.worker.logwriter.childopts"));
    assertTrue(Utils.isValidConf(config));
    assertEquals(Map.of(), of(""));
  }

  @Test
  void whatDoesNotExistOrHasAnotherTypeIsNamed() {
    for (String property :
        new String[] {
          "topology.producer.batchsize=100",
          "topology.producer.batch.size=many",
          "topology.producer.batch.size=0",
          "topology.debug=1",
          "topology.bolt.wait.progressive.level2.count=1.5"
        }) {
      Exception error = assertThrows(IllegalArgumentException.class, () -> of(property));
      String named = "STORM_PROPERTIES: " + property.split("=")[0] + ": ";
      assertTrue(error.getMessage().startsWith(named), error.getMessage());
    }
  }

  private static Config of(String properties) {
    Map<String, String> variables = new HashMap<>();
    """
    KAFKA_BOOTSTRAP=nowhere:1 REDIS_HOST=nowhere REDIS_PORT=1 STORM_GUARANTEE=at_least_once
    STORM_PARALLELISM=1 STORM_FLUSH_MS=1000 STORM_COMMIT_MS=30000 READY_FILE=ready"""
        .lines()
        .flatMap(line -> Stream.of(line.split(" ")))
        .forEach(each -> variables.put(each.split("=")[0], each.split("=")[1]));
    variables.put("STORM_PROPERTIES", properties);
    return AdsTopology.config(Settings.from(variables));
  }
}
