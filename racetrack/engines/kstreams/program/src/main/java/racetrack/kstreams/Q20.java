package racetrack.kstreams;

import com.fasterxml.jackson.annotation.JsonProperty;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;
import racetrack.kstreams.Nexmark.Auction;
import racetrack.kstreams.Nexmark.Event;

/** Bids with their auctions, for category 10. */
final class Q20 {
  private static final long CATEGORY = 10;

  private Q20() {}

  static void connect(Nexmark nexmark) {
    KStream<Long, Event> auctions =
        nexmark
            .auctions()
            .map((key, event) -> KeyValue.pair(event.auction().id(), withoutTexts(event)));
    KStream<Long, Event> bids =
        nexmark.bids().map((key, event) -> KeyValue.pair(event.bid().auction(), event));
    var join =
        new Join<>(nexmark.topology, "q20", Event.OF_AUCTION, Event.OF_BID, Row::of);
    nexmark.topology.append(join.of(auctions, bids), "q20");
  }

  /**
   * Removes the texts of auctions in other categories. Such auctions must be known all the same:
   * otherwise all bids on them would wait without end.
   */
  private static Event withoutTexts(Event event) {
    long category = event.auction().category();
    if (category == CATEGORY) {
      return event;
    }
    Auction other = new Auction(0, null, null, 0, 0, 0, 0, category, null);
    return new Event(null, other, null, event.dateTime());
  }

  record Row(
      long auction,
      long bidder,
      long price,
      String channel,
      String url,
      @JsonProperty("bid_dateTime") long bidDateTime,
      String bidExtra,
      @JsonProperty("itemName") String itemName,
      String description,
      @JsonProperty("initialBid") long initialBid,
      long reserve,
      @JsonProperty("auction_dateTime") long auctionDateTime,
      long expires,
      long seller,
      long category,
      String auctionExtra) {

    /** Null if the auction is of another category. */
    static Row of(Event opened, Event offered) {
      var auction = opened.auction();
      var bid = offered.bid();
      if (auction.category() != CATEGORY) {
        return null;
      }
      return new Row(
          bid.auction(),
          bid.bidder(),
          bid.price(),
          bid.channel(),
          bid.url(),
          offered.dateTime(),
          bid.extra(),
          auction.itemName(),
          auction.description(),
          auction.initialBid(),
          auction.reserve(),
          opened.dateTime(),
          auction.expires(),
          auction.seller(),
          auction.category(),
          auction.extra());
    }
  }
}
