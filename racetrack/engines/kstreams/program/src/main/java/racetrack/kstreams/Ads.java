package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Serde;

/**
 * The rows of Yahoo's benchmark: its events, the rows of MySQL's tables, and those of the view
 * computed from both.
 */
final class Ads {
  private static final long WINDOW_MS = 10_000;

  private Ads() {}

  /**
   * The fields read from a message of the topic. A message that is not JSON with these fields ends
   * the program.
   */
  record Message(String adId, String eventType, long eventTime) {
    static final Serde<Message> SERDE = Json.of(Message.class);
  }

  /** An event, with its partition and offset. */
  record Event(String adId, String eventType, long eventTime, int partition, long offset)
      implements Progress.Event {
    static final Serde<Event> SERDE = Json.of(Event.class);

    static Event of(Message message, int partition, long offset) {
      return new Event(message.adId, message.eventType, message.eventTime, partition, offset);
    }

    @Override
    public long dueMs() {
      return eventTime;
    }
  }

  record Campaign(String campaignId) {}

  record Ad(String adId, String campaignId) {}

  /** A campaign, and a window of ten seconds that begins at `windowStartMs` (epoch ms). */
  record Window(String campaignId, long windowStartMs) {
    static final Serde<Window> SERDE =
        Compact.ofSize(
            window -> Long.BYTES + window.campaign().length,
            (buffer, window) -> buffer.putLong(window.windowStartMs).put(window.campaign()),
            Window::read);

    static Window of(String campaign, long timeMs) {
      return new Window(campaign, timeMs - timeMs % WINDOW_MS);
    }

    private byte[] campaign() {
      return campaignId.getBytes(StandardCharsets.UTF_8);
    }

    private static Window read(ByteBuffer buffer) {
      long start = buffer.getLong();
      return new Window(StandardCharsets.UTF_8.decode(buffer).toString(), start);
    }
  }

  /** The fields of a view that are needed for counting. */
  record AdView(int partition, long dueMs) implements Progress.Event {
    static final Serde<AdView> SERDE =
        Compact.of(
            Integer.BYTES + Long.BYTES,
            (buffer, view) -> buffer.putInt(view.partition).putLong(view.dueMs),
            buffer -> new AdView(buffer.getInt(), buffer.getLong()));
  }

  record WindowCount(String campaignId, long windowStartMs, long seenCount) {
    static WindowCount of(Window window, Counts counts) {
      return new WindowCount(window.campaignId, window.windowStartMs, counts.total());
    }
  }
}
