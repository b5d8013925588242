package racetrack.kstreams;

import racetrack.kstreams.Nexmark.Event;

/** Bids on auctions with certain ids. */
final class Q2 {
  private static final long EVERY = 123;

  private Q2() {}

  static void connect(Nexmark nexmark) {
    nexmark.topology.append(
        nexmark
            .bids()
            .filter((key, event) -> event.bid().auction() % EVERY == 0)
            .mapValues(Row::of),
        "q2");
  }

  record Row(long auction, long price) {
    static Row of(Event event) {
      return new Row(event.bid().auction(), event.bid().price());
    }
  }
}
