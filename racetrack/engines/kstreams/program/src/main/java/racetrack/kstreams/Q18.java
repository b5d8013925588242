package racetrack.kstreams;

import com.fasterxml.jackson.annotation.JsonProperty;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import racetrack.kstreams.Compact.Pair;
import racetrack.kstreams.Nexmark.Event;

/** The latest bid of each bidder on each auction. */
final class Q18 {
  private Q18() {}

  static void connect(Nexmark nexmark) {
    TopologyContext topology = nexmark.topology;
    KTable<Pair, Event> latest =
        nexmark
            .bids()
            .map(
                (key, event) ->
                    KeyValue.pair(new Pair(event.bid().bidder(), event.bid().auction()), event))
            .repartition(topology.byKey("q18-bids", Pair.SERDE, Event.OF_BID))
            .groupByKey(Grouped.with(Pair.SERDE, Event.OF_BID))
            .reduce(
                (before, event) -> event.dateTime() >= before.dateTime() ? event : before,
                topology.table("q18-latest", Pair.SERDE, Event.OF_BID));
    topology.write(
        latest
            .toStream()
            .map((pair, event) -> KeyValue.pair(new Key(pair.first(), pair.second()), Row.of(event))),
        "q18");
  }

  record Key(long bidder, long auction) {}

  record Row(
      long auction,
      long bidder,
      long price,
      String channel,
      String url,
      @JsonProperty("dateTime") long dateTime,
      String extra) {
    static Row of(Event event) {
      var bid = event.bid();
      return new Row(
          bid.auction(),
          bid.bidder(),
          bid.price(),
          bid.channel(),
          bid.url(),
          event.dateTime(),
          bid.extra());
    }
  }
}
