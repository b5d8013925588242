package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import racetrack.program.ValidMessage;

class JsonTest {
  @Test
  void validMessagesAreReadAsByAllEngines() throws IOException {
    var pageviews = Pageview.Message.SERDE.deserializer();
    var events = Ads.Message.SERDE.deserializer();
    for (ValidMessage of : ValidMessage.all()) {
      assertEquals(
          new Pageview.Message(of.userId(), "/products/1", of.text(), of.dueMs()),
          pageviews.deserialize("pageviews", of.pageview()));
      assertEquals(
          new Ads.Message("/products/1", of.text(), of.dueMs()),
          events.deserialize("ad-events", of.event()));
    }
  }
}
