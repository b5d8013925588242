package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Any property of Kafka Streams and its clients can be set, and a misspelled one is named. */
class SettingsTest {
  @Test
  void propertiesOverrideTheSettings() {
    Properties all =
        of("num.stream.threads=3  producer.client.id='a \"b' admin.retries=\"7\" topic.x=a\\ b");
    assertEquals("3", all.get("num.stream.threads"));
    assertEquals("a \"b", all.get("producer.client.id"));
    assertEquals("7", all.get("admin.retries"));
    assertEquals("a b", all.get("topic.x"));
    assertEquals(1, of("").get("num.stream.threads"));
  }

  @Test
  void aPropertyThatDoesNotExistIsNamed() {
    for (String name : new String[] {"num.streams.threads", "producer.max.poll.records"}) {
      Exception error = assertThrows(IllegalArgumentException.class, () -> of(name + "=1"));
      assertTrue(error.getMessage().contains(name));
    }
    assertThrows(IllegalArgumentException.class, () -> of("'linger.ms=1"));
  }

  private static Properties of(String properties) {
    Map<String, String> variables = new HashMap<>();
    """
    KAFKA_BOOTSTRAP=nowhere:1 SCHEMA_REGISTRY_URL=http://nowhere WORKLOAD=shop
    KSTREAMS_COMMIT_MS=100 KSTREAMS_GUARANTEE=at_least_once KSTREAMS_THREADS=1
    KSTREAMS_CACHE_MB=10 KSTREAMS_LINGER_MS=5 KSTREAMS_STORE=rocksdb KSTREAMS_CHANGELOG=on
    KSTREAMS_AFTER_A_KILL=resume STATE_FOLDER=state READY_FILE=ready"""
        .lines()
        .flatMap(line -> Stream.of(line.split(" ")))
        .forEach(each -> variables.put(each.split("=")[0], each.split("=")[1]));
    variables.put("KSTREAMS_PROPERTIES", properties);
    return Settings.from(variables).forStreams("test");
  }
}
