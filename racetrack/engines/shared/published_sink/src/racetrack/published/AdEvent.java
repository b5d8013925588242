package racetrack.published;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;

/** A message of the topic; one that is no such JSON ends the program. */
public record AdEvent(
    @JsonProperty("user_id") String userId,
    @JsonProperty("page_id") String pageId,
    @JsonProperty("ad_id") String adId,
    @JsonProperty("ad_type") String adType,
    @JsonProperty("event_type") String eventType,
    @JsonProperty("event_time") long eventTime,
    @JsonProperty("ip_address") String ipAddress) {
  public static final String TOPIC = "ad-events";
  public static final String VIEW = "view";
  private static final ObjectReader JSON = new ObjectMapper().readerFor(AdEvent.class);

  public static AdEvent parse(byte[] message) {
    try {
      return JSON.readValue(message);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
