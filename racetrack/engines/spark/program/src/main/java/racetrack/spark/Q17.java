package racetrack.spark;

/**
 * Bids and prices per auction and day (UTC). Spark's average of integers has decimals, so it is
 * computed by `div`, which truncates.
 */
final class Q17 {
  static final Nexmark.Query QUERY =
      new Nexmark.Query(
          "auction, day",
          """
          SELECT auction, date_format(timestamp_millis(dateTime), 'yyyy-MM-dd') AS day,
            count(*) AS total_bids,
            count(*) FILTER (WHERE price < 10000) AS rank1_bids,
            count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
            count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
            min(price) AS min_price,
            max(price) AS max_price,
            sum(price) DIV count(*) AS avg_price,
            sum(price) AS sum_price
          FROM bid
          GROUP BY auction, date_format(timestamp_millis(dateTime), 'yyyy-MM-dd')
          """);

  private Q17() {}
}
