package racetrack.kstreams;

import java.time.Duration;
import java.time.LocalDate;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import racetrack.kstreams.Compact.Pair;

/** Bids and prices per auction and day (UTC). */
final class Q17 {
  private static final long DAY_MS = Duration.ofDays(1).toMillis();
  private static final long RANK2_FROM = 10_000;
  private static final long RANK3_FROM = 1_000_000;

  private Q17() {}

  static void connect(Nexmark nexmark) {
    TopologyContext topology = nexmark.topology;
    KTable<Pair, Bids> bids =
        nexmark
            .bids()
            .map(
                (key, event) ->
                    KeyValue.pair(
                        new Pair(event.bid().auction(), event.dateTime() / DAY_MS),
                        event.bid().price()))
            .repartition(topology.byKey("q17-prices", Pair.SERDE, Serdes.Long()))
            .groupByKey(Grouped.with(Pair.SERDE, Serdes.Long()))
            .aggregate(
                () -> Bids.NONE,
                (auctionAndDay, price, before) -> before.and(price),
                topology.table("q17-bids", Pair.SERDE, Bids.SERDE));
    topology.write(
        bids.toStream()
            .map(
                (auctionAndDay, all) -> {
                  Key key = Key.of(auctionAndDay);
                  return KeyValue.pair(key, Row.of(key, all));
                }),
        "q17");
  }

  record Bids(long total, long rank1, long rank2, long rank3, long min, long max, long sum) {
    static final Bids NONE = new Bids(0, 0, 0, 0, Long.MAX_VALUE, Long.MIN_VALUE, 0);
    static final Serde<Bids> SERDE =
        Compact.of(
            7 * Long.BYTES,
            (buffer, bids) ->
                buffer
                    .putLong(bids.total)
                    .putLong(bids.rank1)
                    .putLong(bids.rank2)
                    .putLong(bids.rank3)
                    .putLong(bids.min)
                    .putLong(bids.max)
                    .putLong(bids.sum),
            buffer ->
                new Bids(
                    buffer.getLong(),
                    buffer.getLong(),
                    buffer.getLong(),
                    buffer.getLong(),
                    buffer.getLong(),
                    buffer.getLong(),
                    buffer.getLong()));

    Bids and(long price) {
      int rank = price < RANK2_FROM ? 1 : price < RANK3_FROM ? 2 : 3;
      return new Bids(
          total + 1,
          rank == 1 ? rank1 + 1 : rank1,
          rank == 2 ? rank2 + 1 : rank2,
          rank == 3 ? rank3 + 1 : rank3,
          Math.min(min, price),
          Math.max(max, price),
          sum + price);
    }
  }

  record Key(long auction, String day) {
    static Key of(Pair auctionAndDay) {
      return new Key(auctionAndDay.first(), LocalDate.ofEpochDay(auctionAndDay.second()).toString());
    }
  }

  record Row(
      long auction,
      String day,
      long totalBids,
      long rank1Bids,
      long rank2Bids,
      long rank3Bids,
      long minPrice,
      long maxPrice,
      long avgPrice,
      long sumPrice) {
    /** The average of integers is an integer in SQL: truncated. */
    static Row of(Key key, Bids bids) {
      return new Row(
          key.auction,
          key.day,
          bids.total,
          bids.rank1,
          bids.rank2,
          bids.rank3,
          bids.min,
          bids.max,
          bids.sum / bids.total,
          bids.sum);
    }
  }
}
