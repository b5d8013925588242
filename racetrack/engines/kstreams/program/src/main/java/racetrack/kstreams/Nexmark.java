package racetrack.kstreams;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;

/**
 * Nexmark on Kafka Streams: the topic, and what the queries have in common. Each query is a class
 * of its own, such as `Q4`, and writes its result to a topic, such as `kstreams.q4`. If rows are
 * only added, each is a message without a key. Otherwise there is a message per changed row, as in
 * `ShopTopology`.
 *
 * <p>docs/nexmark.md describes the workload. Ids of persons and auctions are unique in it, so each
 * is one row of a store.
 *
 * <p>If you change this file, it is compiled at the next start.
 */
final class Nexmark {
  static final String EVENTS = "nexmark";
  static final List<String> INPUTS = List.of(EVENTS);
  static final Serde<Long> ID = Serdes.Long();

  private static final Map<String, Consumer<Nexmark>> QUERIES =
      Map.of(
          "q0", Q0::connect,
          "q1", Q1::connect,
          "q2", Q2::connect,
          "q3", Q3::connect,
          "q4", Q4::connect,
          "q5", Q5::connect,
          "q8", Q8::connect,
          "q17", Q17::connect,
          "q18", Q18::connect,
          "q20", Q20::connect);

  final TopologyContext topology;
  private final KStream<Integer, Event> events;

  private Nexmark(TopologyContext topology) {
    this.topology = topology;
    events = topology.events(EVENTS, Message.SERDE).filter((key, event) -> event != null);
  }

  /** Connects the queries that the settings select; they read the topic once. */
  static TopologyContext build(Settings settings, int partitions) {
    if (!QUERIES.keySet().containsAll(settings.queries())) {
      throw new IllegalArgumentException(
          "NEXMARK_QUERIES=" + settings.queries() + ": there are " + new TreeSet<>(QUERIES.keySet()));
    }
    TopologyContext topology = new TopologyContext(settings, partitions);
    Nexmark nexmark = new Nexmark(topology);
    settings.queries().forEach(query -> QUERIES.get(query).accept(nexmark));
    return topology;
  }

  KStream<Integer, Event> persons() {
    return events.filter((key, event) -> event.person() != null);
  }

  KStream<Integer, Event> auctions() {
    return events.filter((key, event) -> event.auction() != null);
  }

  KStream<Integer, Event> bids() {
    return events.filter((key, event) -> event.bid() != null);
  }

  /**
   * Partitions rows of windows by key, and follows them with watermarks; see `Timed`. `rowOf`
   * returns null for events without a row. Windows end at multiples of `everyMs`.
   */
  <V> KStream<Long, Timed<V>> timed(
      String name, long everyMs, Function<Event, KeyValue<Long, V>> rowOf, Serde<V> row) {
    long delayMs = topology.settings.watermarkDelayMs();
    return events
        .process(() -> new Timed.Send<V>(rowOf, everyMs, delayMs))
        .repartition(topology.byKeyWithWatermarks(name, ID, row));
  }

  // The records, with all fields of a message.
  record Person(
      long id,
      String name,
      String emailAddress,
      String creditCard,
      String city,
      String state,
      String extra) {}

  record Auction(
      long id,
      String itemName,
      String description,
      long initialBid,
      long reserve,
      long expires,
      long seller,
      long category,
      String extra) {

    private void write(DataOutputStream out) throws IOException {
      out.writeLong(id);
      Compact.write(out, itemName);
      Compact.write(out, description);
      out.writeLong(initialBid);
      out.writeLong(reserve);
      out.writeLong(expires);
      out.writeLong(seller);
      out.writeLong(category);
      Compact.write(out, extra);
    }

    private static Auction read(DataInputStream in) throws IOException {
      return new Auction(
          in.readLong(),
          Compact.readText(in),
          Compact.readText(in),
          in.readLong(),
          in.readLong(),
          in.readLong(),
          in.readLong(),
          in.readLong(),
          Compact.readText(in));
    }
  }

  record Bid(long auction, long bidder, long price, String channel, String url, String extra) {
    private void write(DataOutputStream out) throws IOException {
      out.writeLong(auction);
      out.writeLong(bidder);
      out.writeLong(price);
      Compact.write(out, channel);
      Compact.write(out, url);
      Compact.write(out, extra);
    }

    private static Bid read(DataInputStream in) throws IOException {
      return new Bid(
          in.readLong(),
          in.readLong(),
          in.readLong(),
          Compact.readText(in),
          Compact.readText(in),
          Compact.readText(in));
    }
  }

  /** A person, an auction or a bid, and when it was due (epoch ms). The others are null. */
  record Event(Person person, Auction auction, Bid bid, long dateTime) {
    /** Serdes for events with a bid, and with an auction. */
    static final Serde<Event> OF_BID =
        Compact.ofRow(
            (out, event) -> {
              out.writeLong(event.dateTime);
              event.bid.write(out);
            },
            in -> {
              long dateTime = in.readLong();
              return new Event(null, null, Bid.read(in), dateTime);
            });

    static final Serde<Event> OF_AUCTION =
        Compact.ofRow(
            (out, event) -> {
              out.writeLong(event.dateTime);
              event.auction.write(out);
            },
            in -> {
              long dateTime = in.readLong();
              return new Event(null, Auction.read(in), null, dateTime);
            });
  }

  /** The fields of a message. Only those of the records may be missing. */
  private static final class Message {
    /** Reads messages; those that do not contain exactly one record are null. */
    static final Serde<Event> SERDE =
        Serdes.serdeFrom(
            (topic, event) -> {
              throw new UnsupportedOperationException(topic + " is not written");
            },
            (topic, data) -> read(data));

    private static final ObjectReader READER =
        JsonMapper.builder()
            .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
            .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
            .withCoercionConfig(
                LogicalType.Textual,
                texts ->
                    texts
                        .setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                        .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                        .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail))
            .build()
            .readerFor(Message.class);

    private final int kind;
    private final long dateTime;
    @JsonProperty private Person person;
    @JsonProperty private Auction auction;
    @JsonProperty private Bid bid;

    @JsonCreator
    private Message(
        @JsonProperty("event_type") int kind, @JsonProperty("dateTime") long dateTime) {
      this.kind = kind;
      this.dateTime = dateTime;
    }

    private static Event read(byte[] data) {
      try {
        Message message = data == null ? null : READER.readValue(data);
        return message != null && message.isValid()
            ? new Event(message.person, message.auction, message.bid, message.dateTime)
            : null;
      } catch (IOException error) {
        return null;
      }
    }

    private boolean isValid() {
      return dateTime > 0
          && kind >= 0
          && kind <= 2
          && (person != null) == (kind == 0)
          && (auction != null) == (kind == 1)
          && (bid != null) == (kind == 2);
    }
  }
}
