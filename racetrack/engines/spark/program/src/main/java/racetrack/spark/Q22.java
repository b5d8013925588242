package racetrack.spark;

/** Bids with the folders in their URLs. */
final class Q22 {
  static final Nexmark.Query QUERY =
      Nexmark.Query.ofAddedRows(
          """
          SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1,
            split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
          FROM bid
          """);

  private Q22() {}
}
