package racetrack.redis;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import racetrack.program.Refused;

/**
 * A message of the topic, without additional fields such as padding. One that is not JSON with these
 * fields ends the program.
 */
@JsonIgnoreProperties(ignoreUnknown = true)
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
  private static final ObjectReader JSON =
      new ObjectMapper()
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .readerFor(AdEvent.class);

  /**
   * Parses a message. Throws an exception if it is not an event, or lacks a field that is needed
   * for counting.
   */
  public static AdEvent parse(byte[] message) {
    if (message == null) {
      throw new IllegalArgumentException("no value (a tombstone)");
    }
    try {
      AdEvent event = JSON.readValue(message);
      if (event == null || event.adId == null || event.eventType == null) {
        throw new IllegalArgumentException("ad_id or event_type is missing");
      }
      return event;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * Like `parse`, but an invalid message ends the program, which first prints the message's
   * position.
   */
  public static AdEvent parseOrEnd(byte[] message, int partition, long offset) {
    try {
      return parse(message);
    } catch (RuntimeException error) {
      new Refused(TOPIC, partition, offset, error).end();
      throw error;
    }
  }
}
