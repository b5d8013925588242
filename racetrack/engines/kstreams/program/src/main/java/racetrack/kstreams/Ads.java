package racetrack.kstreams;

import java.nio.charset.StandardCharsets;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.ToLongFunction;
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

  /** An event, with its partition. */
  record Event(String adId, String eventType, long eventTime, int partition)
      implements Progress.Event {
    static Event of(Message message, int partition) {
      return new Event(message.adId, message.eventType, message.eventTime, partition);
    }

    @Override
    public long dueMs() {
      return eventTime;
    }
  }

  record Campaign(String campaignId) {}

  record Ad(String adId, String campaignId) {}

  /** The campaign of an ad; null if there is no such ad. */
  record Placed(String campaignId) {
    static final Serde<Placed> SERDE = Json.of(Placed.class);

    static Placed of(Ad ad) {
      return new Placed(ad == null ? null : ad.campaignId);
    }
  }

  /** An ad, and a window of ten seconds that begins at `windowStartMs` (epoch ms). */
  record AdWindow(String adId, long windowStartMs) {
    static final Serde<AdWindow> SERDE =
        serde(AdWindow::new, AdWindow::adId, AdWindow::windowStartMs);

    static AdWindow of(Event event) {
      return new AdWindow(event.adId, event.eventTime - event.eventTime % WINDOW_MS);
    }
  }

  /** A campaign, and such a window. */
  record Window(String campaignId, long windowStartMs) {
    /** The campaign of views of unknown ads. */
    static final String NO_CAMPAIGN = "";

    static final Serde<Window> SERDE =
        serde(Window::new, Window::campaignId, Window::windowStartMs);

    boolean isOfCampaign() {
      return !campaignId.equals(NO_CAMPAIGN);
    }
  }

  /**
   * A change of the number of views in a window, and the events that are the reason: those of one
   * partition, or none if an ad has moved.
   */
  record Change(long views, int partition, long events, long dueMs) implements Progress.Event {
    static final Serde<Change> SERDE =
        Compact.of(
            3 * Long.BYTES + Integer.BYTES,
            (buffer, change) ->
                buffer
                    .putLong(change.views)
                    .putInt(change.partition)
                    .putLong(change.events)
                    .putLong(change.dueMs),
            buffer ->
                new Change(buffer.getLong(), buffer.getInt(), buffer.getLong(), buffer.getLong()));

    static Change of(Event view) {
      return new Change(1, view.partition, 1, view.eventTime);
    }

    static Change of(long views) {
      return new Change(views, 0, 0, 0);
    }

    /** The sum of two changes by events of the same partition. */
    Change plus(Change other) {
      return new Change(
          views + other.views, partition, events + other.events, Math.max(dueMs, other.dueMs));
    }
  }

  record WindowCount(String campaignId, long windowStartMs, long seenCount) {
    static WindowCount of(Window window, Long views) {
      return views == null
          ? null
          : new WindowCount(window.campaignId, window.windowStartMs, views);
    }
  }

  /** Serde for a text and a number. It sorts by the text first, unless one begins with another. */
  private static <T> Serde<T> serde(
      BiFunction<String, Long, T> of, Function<T, String> text, ToLongFunction<T> number) {
    return Compact.ofSize(
        value -> Long.BYTES + bytes(text.apply(value)).length,
        (buffer, value) ->
            buffer.put(bytes(text.apply(value))).putLong(number.applyAsLong(value)),
        buffer -> {
          byte[] read = new byte[buffer.remaining() - Long.BYTES];
          buffer.get(read);
          return of.apply(new String(read, StandardCharsets.UTF_8), buffer.getLong());
        });
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
