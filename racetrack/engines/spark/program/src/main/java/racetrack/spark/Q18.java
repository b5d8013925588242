package racetrack.spark;

/**
 * The latest bid of each bidder on each auction. Spark has no ROW_NUMBER on streams, but `max_by`
 * finds the same row.
 */
final class Q18 {
  static final Nexmark.Query QUERY =
      new Nexmark.Query(
          "bidder, auction",
          """
          SELECT auction, bidder, latest.price, latest.channel, latest.url, latest.dateTime,
            latest.extra
          FROM (
            SELECT auction, bidder,
              max_by(struct(price, channel, url, dateTime, extra), dateTime) AS latest
            FROM bid
            GROUP BY bidder, auction
          )
          """);

  private Q18() {}
}
