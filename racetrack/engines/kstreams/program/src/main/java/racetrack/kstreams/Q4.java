package racetrack.kstreams;

import com.fasterxml.jackson.annotation.JsonProperty;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import racetrack.kstreams.Nexmark.Event;

/** Average of the winning prices in each category. */
final class Q4 {
  private Q4() {}

  static void connect(Nexmark nexmark) {
    TopologyContext topology = nexmark.topology;
    KStream<Long, Auction> auctions =
        nexmark
            .auctions()
            .map((key, event) -> KeyValue.pair(event.auction().id(), Auction.of(event)));
    KStream<Long, Bid> bids =
        nexmark.bids().map((key, event) -> KeyValue.pair(event.bid().auction(), Bid.of(event)));
    KTable<Long, Price> winning =
        new Join<>(topology, "q4", Auction.SERDE, Bid.SERDE, Price::of)
            .of(auctions, bids)
            .groupByKey(Grouped.with(Nexmark.ID, Price.SERDE))
            .reduce(Price::higher, topology.table("q4-winning", Nexmark.ID, Price.SERDE));
    KTable<Long, Average> averages =
        winning
            .groupBy(
                (auction, price) -> KeyValue.pair(price.category, price.price),
                Grouped.with("q4-by-category", Nexmark.ID, Serdes.Long()))
            .aggregate(
                () -> Average.NONE,
                Average::plus,
                Average::minus,
                topology.table("q4-averages", Nexmark.ID, Average.SERDE));
    topology.write(averages.toStream().mapValues(Row::of), "q4");
  }

  /** The category of an auction, and when bids on it are valid. */
  record Auction(long category, long dateTime, long expires) {
    static final Serde<Auction> SERDE =
        Compact.of(
            3 * Long.BYTES,
            (buffer, auction) ->
                buffer
                    .putLong(auction.category)
                    .putLong(auction.dateTime)
                    .putLong(auction.expires),
            buffer -> new Auction(buffer.getLong(), buffer.getLong(), buffer.getLong()));

    static Auction of(Event event) {
      var auction = event.auction();
      return new Auction(auction.category(), event.dateTime(), auction.expires());
    }

    boolean isOpen(Bid bid) {
      return bid.dateTime >= dateTime && bid.dateTime <= expires;
    }
  }

  record Bid(long price, long dateTime) {
    static final Serde<Bid> SERDE =
        Compact.of(
            2 * Long.BYTES,
            (buffer, bid) -> buffer.putLong(bid.price).putLong(bid.dateTime),
            buffer -> new Bid(buffer.getLong(), buffer.getLong()));

    static Bid of(Event event) {
      return new Bid(event.bid().price(), event.dateTime());
    }
  }

  /** The price of a valid bid, and the category of its auction. */
  record Price(long category, long price) {
    static final Serde<Price> SERDE =
        Compact.of(
            2 * Long.BYTES,
            (buffer, price) -> buffer.putLong(price.category).putLong(price.price),
            buffer -> new Price(buffer.getLong(), buffer.getLong()));

    /** Null if the bid is not valid. */
    static Price of(Auction auction, Bid bid) {
      return auction.isOpen(bid) ? new Price(auction.category, bid.price) : null;
    }

    static Price higher(Price one, Price other) {
      return other.price > one.price ? other : one;
    }
  }

  record Average(long sum, long count) {
    static final Average NONE = new Average(0, 0);
    static final Serde<Average> SERDE =
        Compact.of(
            2 * Long.BYTES,
            (buffer, average) -> buffer.putLong(average.sum).putLong(average.count),
            buffer -> new Average(buffer.getLong(), buffer.getLong()));

    static Average plus(long category, long price, Average average) {
      return new Average(average.sum + price, average.count + 1);
    }

    static Average minus(long category, long price, Average average) {
      return average.count == 1 ? null : new Average(average.sum - price, average.count - 1);
    }
  }

  record Row(long id, @JsonProperty("final") long average) {
    /** The average of integers is an integer in SQL: truncated. */
    static Row of(long category, Average average) {
      return average == null ? null : new Row(category, average.sum / average.count);
    }
  }
}
