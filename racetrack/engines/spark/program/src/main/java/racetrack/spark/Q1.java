package racetrack.spark;

/** All bids, with the price in euros. */
final class Q1 {
  static final Nexmark.Query QUERY =
      Nexmark.Query.ofAddedRows(
          """
          SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price, dateTime, extra
          FROM bid
          """);

  private Q1() {}
}
