package racetrack.redis;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.junit.jupiter.api.Test;

/** Reads unusual events that are valid (tests/json_messages.py) as all engines do. */
class JsonTest {
  @Test
  void validEventsAreReadAsByAllEngines() throws IOException {
    for (String line : Files.readAllLines(Path.of(System.getenv("JSON_MESSAGES")))) {
      String[] row = line.split(" ", -1);
      AdEvent event = AdEvent.parse(decoded(row[1]));
      assertEquals("/products/1", event.adId());
      assertEquals(new String(decoded(row[2]), StandardCharsets.UTF_8), event.eventType());
      assertEquals(Long.parseLong(row[3]), event.eventTime());
    }
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }
}
