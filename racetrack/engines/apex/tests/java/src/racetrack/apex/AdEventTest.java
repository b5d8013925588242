package racetrack.apex;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import racetrack.program.Refused;
import racetrack.redis.AdEvent;

class AdEventTest {
  private static final String EVENT =
      "{\"ad_id\": \"a\", \"event_type\": \"view\", \"event_time\": \"1795000000000\"}";

  @Test
  void whatLacksAFieldOrIsNoEventIsAnErrorThatIsReportedInOneLine() {
    List<String> wrong =
        List.of(
            "hello", "null", "[]", "{\n\"ad_id\"", EVENT.replace("ad_id", "x"),
            EVENT.replace("event_type", "x"), EVENT.replace("event_time", "x"),
            EVENT.replace("1795000000000", "soon"));
    for (String text : wrong) {
      byte[] message = text.getBytes(StandardCharsets.UTF_8);
      reported(assertThrows(RuntimeException.class, () -> AdEvent.parse(message), text));
    }
    reported(assertThrows(RuntimeException.class, () -> AdEvent.parse(null)));
  }

  private static void reported(RuntimeException error) {
    String line = new Refused(AdEvent.TOPIC, 3, 812, error).line();
    String place = "RACETRACK refused topic=ad-events, partition=3, offset=812, field=, reason=";
    assertTrue(line.startsWith(place) && line.length() > place.length() + 10, line);
    assertEquals(1, line.lines().count(), line);
  }
}
