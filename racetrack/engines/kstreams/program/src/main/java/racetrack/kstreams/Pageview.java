package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Serde;

/** A pageview, with its partition and offset, and the type and target in its URL. */
record Pageview(
    long userId,
    String url,
    String channel,
    long receivedAt,
    int partition,
    long offset,
    String pageviewType,
    Long targetId)
    implements Progress.Event {
  static final String PRODUCTS = "products";
  static final String PROFILES = "profiles";
  private static final int PREFIX = "/products/".length();

  /** A message of the topic. A message that is not JSON with these fields ends the program. */
  record Message(long userId, String url, String channel, long receivedAt) {
    static final Serde<Message> SERDE = Json.of(Message.class);
  }

  static Pageview of(Message message, int partition, long offset) {
    String url = message.url;
    String type =
        url.startsWith("/products/") ? PRODUCTS : url.startsWith("/profiles/") ? PROFILES : null;
    Long target = type == null ? null : Long.parseLong(url, PREFIX, url.length(), 10);
    return new Pageview(
        message.userId, url, message.channel, message.receivedAt, partition, offset, type, target);
  }

  boolean isOf(String type) {
    return type.equals(pageviewType);
  }

  @Override
  public long dueMs() {
    return receivedAt;
  }

  View view() {
    return new View(userId, receivedAt, partition, offset);
  }

  /** The fields of a pageview that are needed in streams whose key is the pageview's target. */
  record View(long viewerId, long receivedAt, int partition, long offset)
      implements Progress.Event, Comparable<View> {
    static final int BYTES = 3 * Long.BYTES + Integer.BYTES;
    static final Serde<View> SERDE =
        Compact.of(BYTES, (buffer, view) -> view.write(buffer), View::read);

    void write(ByteBuffer buffer) {
      buffer.putLong(viewerId).putLong(receivedAt).putInt(partition).putLong(offset);
    }

    static View read(ByteBuffer buffer) {
      return new View(buffer.getLong(), buffer.getLong(), buffer.getInt(), buffer.getLong());
    }

    @Override
    public long dueMs() {
      return receivedAt;
    }

    /** Orders by time; partition and offset decide between views of the same time. */
    @Override
    public int compareTo(View other) {
      int byTime = Long.compare(receivedAt, other.receivedAt);
      int byPartition = Integer.compare(partition, other.partition);
      return byTime != 0
          ? byTime
          : byPartition != 0 ? byPartition : Long.compare(offset, other.offset);
    }
  }

  /** The fields of a pageview that a store keeps under the key (user, offset). */
  record Kept(long receivedAt, String url, String channel) {
    static final Serde<Kept> SERDE =
        Compact.ofSize(
            kept -> Long.BYTES + Character.BYTES + kept.urlBytes().length + kept.channelBytes().length,
            (buffer, kept) -> {
              byte[] url = kept.urlBytes();
              buffer.putLong(kept.receivedAt).putChar(lengthOf(url)).put(url);
              buffer.put(kept.channelBytes());
            },
            buffer -> {
              long receivedAt = buffer.getLong();
              String url = text(buffer, buffer.getChar());
              return new Kept(receivedAt, url, text(buffer, buffer.remaining()));
            });

    static Kept of(Pageview pageview) {
      return new Kept(pageview.receivedAt, pageview.url, pageview.channel);
    }

    Message by(long userId) {
      return new Message(userId, url, channel, receivedAt);
    }

    private static char lengthOf(byte[] url) {
      if (url.length > Character.MAX_VALUE) {
        throw new IllegalArgumentException("a url of " + url.length + " bytes");
      }
      return (char) url.length;
    }

    private byte[] urlBytes() {
      return url.getBytes(StandardCharsets.UTF_8);
    }

    private byte[] channelBytes() {
      return channel.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(ByteBuffer buffer, int bytes) {
      byte[] found = new byte[bytes];
      buffer.get(found);
      return new String(found, StandardCharsets.UTF_8);
    }
  }
}
