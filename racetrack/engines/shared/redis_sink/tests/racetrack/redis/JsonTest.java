package racetrack.redis;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import racetrack.program.ValidMessage;

class JsonTest {
  @Test
  void validEventsAreReadAsByAllEngines() throws IOException {
    for (ValidMessage message : ValidMessage.all()) {
      AdEvent event = AdEvent.parse(message.event());
      assertEquals("/products/1", event.adId());
      assertEquals(message.text(), event.eventType());
      assertEquals(message.dueMs(), event.eventTime());
    }
  }
}
