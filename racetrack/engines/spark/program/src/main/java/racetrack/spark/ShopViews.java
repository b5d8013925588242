package racetrack.spark;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;

/**
 * The views of the workload `shop` on Spark Structured Streaming. Each is written to a topic, as in
 * `AdsViews`; a message without a value deletes a row.
 *
 * <p>In a query that emits rows whenever they change, Spark can't join the results of aggregations,
 * nor aggregate a join of streams. So streams that would be joined by a key are united into one
 * stream, and one aggregation by that key computes the joined row, such as the newest version of a
 * user and the sums of its purchases. If a purchase changes, its old values are subtracted and its
 * new values are added.
 *
 * <p>Spark's SQL has no ROW_NUMBER on streams and no window that moves with the clock. So the top
 * lists, the last ten views of profiles and the number of recent ones are programmed, with state of
 * their own: `ItemViews`, `LastViews`, `ViewersEmails` and `RecentViews`. `ItemViews` also joins
 * items with their totals, since Spark would sort all pageviews to aggregate a text with them.
 *
 * <p>If you change this file, it is compiled at the next start.
 */
final class ShopViews implements Views {
  private static final String PAGEVIEWS = "pageviews";
  private static final String FLAGS = "dd_flagged_profiles";
  private static final String SUMMARY = "pageviews_summary";
  private static final String SINK = "high_value_users_sink";
  private static final String USERS = "mysql.shop.users";
  private static final String ITEMS = "mysql.shop.items";
  private static final String PURCHASES = "mysql.shop.purchases";
  private static final long MOVES_EVERY_MS = 1_000;

  /**
   * A message that is not JSON with these fields ends the query, so that no measurement continues
   * with wrong counts.
   */
  static final String PAGEVIEWS_STG =
      """
      SELECT partition, offset, said.user_id, said.url, said.channel, said.received_at,
        CASE
          WHEN said.url LIKE '/products/%' THEN 'products'
          WHEN said.url LIKE '/profiles/%' THEN 'profiles'
        END AS pageview_type,
        CASE WHEN said.url LIKE '/products/%' OR said.url LIKE '/profiles/%'
          THEN CAST(substring(said.url, 11) AS BIGINT)
        END AS target_id
      FROM (
        SELECT partition, offset,
          CASE
            WHEN said.user_id IS NULL OR said.url IS NULL OR said.channel IS NULL
              OR said.received_at IS NULL
            THEN raise_error(
              concat('topic=pageviews, partition=', partition, ', offset=', offset, ': no pageview'))
            ELSE said
          END AS said
        FROM (
          SELECT partition, offset,
            from_json(
              CAST(value AS STRING),
              'user_id BIGINT, url STRING, channel STRING, received_at BIGINT') AS said
          FROM pageviews
        )
      )
      """;

  /**
   * Two rows for each change of a purchase: the new values with `times` = 1, and the old values
   * with `times` = -1.
   */
  static final String PURCHASES_CHANGED =
      """
      SELECT times, row.* FROM (
        SELECT times,
          from_json(
            row, 'user_id BIGINT, item_id BIGINT, quantity BIGINT, purchase_price DECIMAL(12, 2)',
            map('mode', 'FAILFAST')) AS row
        FROM (
          SELECT stack(2, 1, debezium_row(value), -1, debezium_row_before(value)) AS (times, row)
          FROM purchases
        )
        WHERE row IS NOT NULL
      )
      """;

  /** The pageviews, and the changed purchases, from which totals are computed. */
  private static final String ITEM_EVENTS =
      """
      SELECT CASE WHEN pageview_type = 'products' THEN target_id END AS item_id, partition,
        received_at, 0 AS times, CAST(NULL AS DECIMAL(12, 2)) AS price, 0L AS sold
      FROM (%s)
      UNION ALL
      SELECT item_id, NULL, NULL, times, times * purchase_price, times * quantity
      FROM (%s)
      """
          .formatted(PAGEVIEWS_STG, PURCHASES_CHANGED);

  /**
   * One aggregation for the totals of each item, for the number of pageviews of each partition
   * (progress), and for the total number of pageviews (summary). As in SQL, a NULL adds nothing to
   * a sum, and a sum of only NULLs is NULL. `ItemViews` joins the totals of items with the items.
   */
  private static final String ITEMS_AND_PROGRESS =
      """
      WITH
      sums AS (
        SELECT item_id, partition, item_id IS NOT NULL AS by_item,
          grouping(item_id) = 0 AS is_sold, coalesce(CAST(item_id AS STRING), 'null') AS item_key,
          grouping(item_id) = 1 AND grouping(partition) = 1 AS is_all,
          count(received_at) AS pageviews, max(received_at) AS max_received_at,
          sum(times) AS orders, count_if(times != 0) AS changes,
          coalesce(sum(price), 0) AS revenue, coalesce(sum(sold), 0) AS items_sold,
          sum(CASE WHEN price IS NOT NULL THEN times END) AS prices,
          sum(CASE WHEN sold IS NOT NULL THEN times END) AS quantities
        FROM item_events
        GROUP BY GROUPING SETS ((item_id), (partition), ())
      ),
      totals AS (
        SELECT *, orders / CAST(nullif(pageviews, 0) AS DOUBLE) AS conversion_rate FROM sums
      ),
      messages AS (
        SELECT stack(5,
          'spark.purchases_by_item', item_key,
          CASE WHEN orders > 0 THEN
            to_json(
              struct(item_id, CASE WHEN prices > 0 THEN revenue END AS revenue, orders,
                CASE WHEN quantities > 0 THEN items_sold END AS items_sold),
              map('ignoreNullFields', 'false'))
          END,
          is_sold AND changes > 0,

          'spark.pageviews_by_item', CAST(item_id AS STRING),
          to_json(struct(item_id, pageviews)),
          by_item AND pageviews > 0,

          'spark.item_summary', NULL, NULL, by_item,

          'spark.pageviews_progress', CAST(partition AS STRING),
          to_json(struct(partition, pageviews AS total, max_received_at)),
          partition IS NOT NULL,

          'spark.pageviews_summary', '"all"',
          to_json(struct('all' AS summary_of, pageviews AS total, max_received_at)),
          is_all AND pageviews > 0
        ) AS (topic, key, value, is_row),
        item_id, struct(revenue, orders, items_sold, pageviews, conversion_rate) AS totals
        FROM totals
      )
      SELECT topic, key, value, topic = 'spark.item_summary' AS is_item, item_id, totals,
        CAST(NULL AS STRUCT<name: STRING, category: STRING>) AS item, CAST(NULL AS BIGINT) AS item_at
      FROM messages
      WHERE is_row
      UNION ALL
      SELECT NULL, NULL, NULL, true, CAST(debezium_key(key) AS BIGINT), NULL,
        from_json(debezium_row(value), 'name STRING, category STRING'), offset
      FROM items
      """;

  private static final String ITEM_VIEWS =
      """
      SELECT topic, key, coalesce(value, to_json(row, map('ignoreNullFields', 'false'))) AS value
      FROM item_views
      """;

  /**
   * Users whose purchases are worth more than 10,000. They are written to a view, and to a topic
   * from which the view `hvu_test` reads them.
   */
  static final String HIGH_VALUE_USERS =
      """
      WITH
      purchases_changed AS (%s),
      together AS (
        SELECT user_id AS id, times, times * purchase_price * quantity AS value,
          CAST(NULL AS STRING) AS user, CAST(NULL AS BIGINT) AS user_at
        FROM purchases_changed
        UNION ALL
        SELECT CAST(debezium_key(key) AS BIGINT), 0, NULL, debezium_row(value), offset FROM users
      ),
      sums AS (
        SELECT id, sum(value) AS lifetime_value, sum(times) AS purchases,
          count_if(times != 0) AS changes,
          from_json(max_by(user, user_at), 'email STRING').email AS email
        FROM together
        GROUP BY id
      )
      SELECT explode(array('spark.high_value_users', '%s')) AS topic,
        coalesce(CAST(id AS STRING), 'null') AS key,
        CASE WHEN lifetime_value > 10000 THEN
          to_json(
            struct(id, email, lifetime_value, purchases), map('ignoreNullFields', 'false'))
        END AS value
      FROM sums
      WHERE changes > 0
      """
          .formatted(PURCHASES_CHANGED, SINK);

  static final String SENT_BACK = "SELECT 'spark.hvu_test' AS topic, key, value FROM sent";

  /**
   * The flagged users. People send the messages by hand, so messages that are not numbers are
   * ignored.
   */
  private static final String FLAGGED =
      """
      SELECT CAST(replace(said, '"', '') AS BIGINT) AS user_id
      FROM (SELECT CAST(value AS STRING) AS said FROM flags)
      WHERE said RLIKE '^"?[0-9]{1,18}"?$'
      """;

  static final String FLAGGED_PROFILES =
      """
      SELECT 'spark.dd_flagged_profiles' AS topic, CAST(user_id AS STRING) AS key,
        to_json(struct(user_id)) AS value
      FROM (%s)
      """
          .formatted(FLAGGED);

  /**
   * A profile may be flagged at any time, and then its earlier pageviews are needed, so the join
   * keeps all pageviews.
   */
  private static final String FLAGGED_VIEWS =
      """
      SELECT 'spark.dd_flagged_profile_view' AS topic,
        to_json(struct(partition, offset)) AS key,
        to_json(
          struct(user_id, url, channel, received_at, partition, offset, pageview_type, target_id),
          map('ignoreNullFields', 'false')) AS value
      FROM joined_views JOIN joined_flags USING (user_id)
      """;

  static final String PROFILE_VIEWS =
      """
      SELECT target_id AS profile_id, user_id AS viewer_id, received_at, partition, offset
      FROM (%s)
      WHERE pageview_type = 'profiles'
      """
          .formatted(PAGEVIEWS_STG);

  /** The views of profiles, and the changes of users, whose emails are joined with them. */
  static final String PROFILE_CHANGES =
      """
      SELECT profile_id, viewer_id, received_at, partition, offset, CAST(NULL AS STRING) AS email,
        false AS is_user
      FROM (%s)
      UNION ALL
      SELECT id, id, NULL, NULL, offset, from_json(row, 'email STRING').email, true
      FROM (
        SELECT CAST(debezium_key(key) AS BIGINT) AS id, debezium_row(value) AS row, offset
        FROM users
      )
      """
          .formatted(PROFILE_VIEWS);

  /** A change of an email alone does not change the view without emails. */
  private static final String LAST_VIEWS =
      """
      SELECT topic, to_json(struct(partition, offset)) AS key, value
      FROM (
        SELECT partition, offset, stack(2,
          'spark.profile_views',
          CASE WHEN is_shown THEN
            to_json(struct(owner_id, viewer_id, received_at, partition, offset))
          END,
          is_moved,

          'spark.profile_views_enriched',
          CASE WHEN is_shown THEN
            to_json(
              struct(owner_id, viewer_id, received_at, partition, offset, owner_email,
                viewer_email),
              map('ignoreNullFields', 'false'))
          END,
          true
        ) AS (topic, value, is_row)
        FROM enriched_views
      )
      WHERE is_row
      """;

  private static final String RECENT_VIEWS =
      """
      SELECT 'spark.profile_views_per_minute_last_10' AS topic,
        to_json(struct(user_id, received_at_minute)) AS key,
        CASE WHEN pageviews > 0 THEN
          to_json(struct(user_id, received_at_minute, pageviews))
        END AS value
      FROM recent_views
      """;

  @Override
  public List<String> inputs() {
    return List.of(PAGEVIEWS, FLAGS, USERS, ITEMS, PURCHASES);
  }

  @Override
  public List<String> views() {
    return List.of(
        "users", "items", "purchases", "pageviews_progress", SUMMARY, "purchases_by_item",
        "pageviews_by_item", "item_summary", "top_viewed_items", "top_converting_items",
        "profile_views", "profile_views_enriched", "profile_views_per_minute_last_10",
        "high_value_users", "hvu_test", "dd_flagged_profiles", "dd_flagged_profile_view");
  }

  @Override
  public List<String> furtherTopics() {
    return List.of(SINK);
  }

  @Override
  public List<String> firstWritten() {
    return List.of(SUMMARY);
  }

  @Override
  public List<DataStreamWriter<Row>> queries(Kafka kafka) {
    SparkSession spark = kafka.spark();
    kafka.stream(PAGEVIEWS).createOrReplaceTempView("pageviews");
    kafka.stream(FLAGS).createOrReplaceTempView("flags");
    kafka.stream(USERS).createOrReplaceTempView("users");
    kafka.stream(ITEMS).createOrReplaceTempView("items");
    kafka.stream(PURCHASES).createOrReplaceTempView("purchases");
    kafka.stream(SINK).createOrReplaceTempView("sent");
    List<String> progress = List.of("pageviews_progress", SUMMARY);
    Dataset<Row> copies =
        kafka
            .mirrored(List.of(USERS, ITEMS, PURCHASES))
            .union(spark.sql(SENT_BACK))
            .union(spark.sql(FLAGGED_PROFILES));
    return List.of(
        kafka.toTopics("copies", copies),
        kafka.toTopicsInOrder("items", items(spark), progress),
        kafka.toTopics("last-views", lastViews(spark)),
        // This query runs also when there is nothing new, because a second may have expired.
        kafka.toTopics("recent-views", recentViews(spark)).trigger(kafka.every(MOVES_EVERY_MS)),
        kafka.toTopics("high-value-users", spark.sql(HIGH_VALUE_USERS)),
        // Joined rows never change, so each is only appended.
        kafka.toTopics("flagged-views", flaggedViews(spark)).outputMode("append"));
  }

  /** The messages of all views of items, and of the progress. */
  static Dataset<Row> items(SparkSession spark) {
    Session.coalesced(spark.sql(ITEM_EVENTS)).createOrReplaceTempView("item_events");
    ItemViews.addedTo(spark.sql(ITEMS_AND_PROGRESS)).createOrReplaceTempView("item_views");
    return spark.sql(ITEM_VIEWS);
  }

  static Dataset<Row> lastViews(SparkSession spark) {
    ViewersEmails.joinedWith(LastViews.of(spark.sql(PROFILE_CHANGES)))
        .createOrReplaceTempView("enriched_views");
    return spark.sql(LAST_VIEWS);
  }

  static Dataset<Row> flaggedViews(SparkSession spark) {
    Session.coalesced(spark.sql(PAGEVIEWS_STG)).createOrReplaceTempView("joined_views");
    Session.coalesced(spark.sql(FLAGGED)).createOrReplaceTempView("joined_flags");
    return spark.sql(FLAGGED_VIEWS);
  }

  static Dataset<Row> recentViews(SparkSession spark) {
    RecentViews.counted(spark.sql(PROFILE_VIEWS)).createOrReplaceTempView("recent_views");
    return spark.sql(RECENT_VIEWS);
  }
}
