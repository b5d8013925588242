package racetrack.spark;

/** All bids, unchanged. */
final class Q0 {
  static final Nexmark.Query QUERY =
      Nexmark.Query.ofAddedRows(
          """
          SELECT auction, bidder, price, dateTime, extra FROM bid
          """);

  private Q0() {}
}
