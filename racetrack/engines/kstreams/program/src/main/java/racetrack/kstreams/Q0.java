package racetrack.kstreams;

import com.fasterxml.jackson.annotation.JsonProperty;
import racetrack.kstreams.Nexmark.Event;

/** All bids, unchanged. */
final class Q0 {
  private Q0() {}

  static void connect(Nexmark nexmark) {
    nexmark.topology.append(nexmark.bids().mapValues(Row::of), "q0");
  }

  record Row(
      long auction,
      long bidder,
      long price,
      @JsonProperty("dateTime") long dateTime,
      String extra) {
    static Row of(Event event) {
      var bid = event.bid();
      return new Row(bid.auction(), bid.bidder(), bid.price(), event.dateTime(), bid.extra());
    }
  }
}
