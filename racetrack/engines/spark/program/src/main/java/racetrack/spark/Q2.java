package racetrack.spark;

/** Bids on auctions with certain ids. */
final class Q2 {
  static final Nexmark.Query QUERY =
      Nexmark.Query.ofAddedRows(
          """
          SELECT auction, price FROM bid WHERE mod(auction, 123) = 0
          """);

  private Q2() {}
}
