package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.junit.jupiter.api.Test;

/** Reads unusual messages that are valid (tests/json_messages.py) as all engines do. */
class JsonTest {
  @Test
  void validMessagesAreReadAsByAllEngines() throws IOException {
    for (String line : Files.readAllLines(Path.of(System.getenv("JSON_MESSAGES")))) {
      String[] row = line.split(" ", -1);
      Pageview.Message pageview =
          Pageview.Message.SERDE.deserializer().deserialize("pageviews", decoded(row[0]));
      Ads.Message event = Ads.Message.SERDE.deserializer().deserialize("ad-events", decoded(row[1]));
      String text = new String(decoded(row[2]), StandardCharsets.UTF_8);
      long dueMs = Long.parseLong(row[3]);
      long userId = Long.parseLong(row[4]);
      assertEquals(new Pageview.Message(userId, "/products/1", text, dueMs), pageview);
      assertEquals(new Ads.Message("/products/1", text, dueMs), event);
    }
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }
}
