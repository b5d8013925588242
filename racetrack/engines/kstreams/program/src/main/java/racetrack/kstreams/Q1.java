package racetrack.kstreams;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.math.BigDecimal;
import racetrack.kstreams.Nexmark.Event;

/** All bids, with the price in euros. */
final class Q1 {
  private static final BigDecimal EUROS = new BigDecimal("0.908");

  private Q1() {}

  static void connect(Nexmark nexmark) {
    nexmark.topology.append(nexmark.bids().mapValues(Row::of), "q1");
  }

  record Row(
      long auction,
      long bidder,
      BigDecimal price,
      @JsonProperty("dateTime") long dateTime,
      String extra) {
    static Row of(Event event) {
      var bid = event.bid();
      BigDecimal price = EUROS.multiply(BigDecimal.valueOf(bid.price()));
      return new Row(bid.auction(), bid.bidder(), price, event.dateTime(), bid.extra());
    }
  }
}
