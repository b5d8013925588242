package racetrack.spark;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;

/**
 * Yahoo's streaming benchmark on Spark Structured Streaming: counts how often ads were viewed, by
 * campaign and window of ten seconds. Views are counted by ad and window first; the counts of ads
 * are then added up by campaign.
 *
 * <p>The changes of every view are written to the topic `spark.<view>`: a message for each changed
 * row, whose key identifies the row. The last messages of all keys together are the view's rows.
 *
 * <p>If you change this file, it is compiled at the next start.
 */
final class AdsViews implements Views {
  private static final String EVENTS = "ad-events";
  private static final String ADS = "mysql.ads.ads";
  private static final List<String> TABLES = List.of("mysql.ads.campaigns", ADS);
  private static final String SUMMARY = "ad_events_summary";
  private static final List<String> PROGRESS = List.of("ad_events_progress", SUMMARY);

  /**
   * The changed counts by ad and window, by partition (progress) and in total (summary), together
   * with the changed campaigns of ads. One aggregation computes all counts, so its rows from one
   * micro-batch are consistent.
   *
   * <p>The start of a window is part of an ordinary key: without a watermark, no window is ever
   * closed. A message that is not JSON ends the query, so that no measurement continues with wrong
   * counts.
   */
  static final String COUNTS =
      """
      WITH
      events AS (
        SELECT partition,
          CASE
            WHEN event.ad_id IS NULL OR event.event_type IS NULL OR event.event_time IS NULL
            THEN raise_error(
              concat('topic=ad-events, partition=', partition, ', offset=', offset, ': no event'))
            ELSE event
          END AS event
        FROM (
          SELECT partition, offset,
            from_json(
              CAST(value AS STRING), 'ad_id STRING, event_type STRING, event_time BIGINT') AS event
          FROM ad_events
        )
      ),
      views AS (
        SELECT partition, event.event_time AS event_time,
          CASE WHEN event.event_type = 'view' THEN event.ad_id END AS ad_id,
          event.event_time - event.event_time % 10000 AS window_start_ms
        FROM events
      ),
      counts AS (
        SELECT ad_id, CASE WHEN ad_id IS NOT NULL THEN window_start_ms END AS window_start_ms,
          partition, count(*) AS total, max(event_time) AS max_received_at,
          grouping(ad_id) = 0 AS is_by_ad
        FROM views
        GROUP BY GROUPING SETS ((ad_id, window_start_ms), (partition), ())
      )
      SELECT coalesce(ad_id, '') AS ad_id, window_start_ms, partition, total, max_received_at,
        CAST(NULL AS STRING) AS campaign_id, CAST(NULL AS BIGINT) AS changed_at
      FROM counts
      WHERE ad_id IS NOT NULL OR NOT is_by_ad
      UNION ALL
      SELECT from_json(concat('[', debezium_key(key), ']'), 'ARRAY<STRING>')[0], NULL, NULL, NULL,
        NULL, from_json(debezium_row(value), 'campaign_id STRING').campaign_id, offset
      FROM ad_changes
      """;

  /** The messages to write. A campaign's window whose ads have all moved away has no row. */
  static final String MESSAGES =
      """
      WITH
      sums AS (
        SELECT campaign_id, window_start_ms, partition,
          sum(total) AS seen_count, max(total) AS total, max(max_received_at) AS max_received_at,
          CASE
            WHEN window_start_ms IS NOT NULL THEN 'spark.campaign_windows'
            WHEN partition IS NOT NULL THEN 'spark.ad_events_progress'
            ELSE 'spark.ad_events_summary'
          END AS topic
        FROM counts_of_campaigns
        GROUP BY campaign_id, window_start_ms, partition
      )
      SELECT topic,
        CASE topic
          WHEN 'spark.campaign_windows' THEN to_json(struct(campaign_id, window_start_ms))
          WHEN 'spark.ad_events_progress' THEN to_json(struct(partition))
          ELSE '"all"'
        END AS key,
        CASE topic
          WHEN 'spark.campaign_windows' THEN
            CASE WHEN seen_count != 0 THEN
              to_json(struct(campaign_id, window_start_ms, seen_count))
            END
          WHEN 'spark.ad_events_progress' THEN to_json(struct(partition, total, max_received_at))
          ELSE to_json(struct('all' AS summary_of, total, max_received_at))
        END AS value
      FROM sums
      """;

  @Override
  public List<String> inputs() {
    return List.of(EVENTS, TABLES.get(0), TABLES.get(1));
  }

  @Override
  public List<String> views() {
    return List.of("campaigns", "ads", "campaign_windows", "ad_events_progress", SUMMARY);
  }

  @Override
  public List<String> firstWritten() {
    return List.of(SUMMARY);
  }

  @Override
  public List<DataStreamWriter<Row>> queries(Kafka kafka) {
    kafka.stream(ADS).createOrReplaceTempView("ad_changes");
    kafka.stream(EVENTS).createOrReplaceTempView("ad_events");
    return List.of(
        kafka.toTopics("tables", kafka.mirrored(TABLES)),
        kafka.toTopicsInOrder("counts", counts(kafka.spark()), PROGRESS));
  }

  /** Computes the messages from the temporary views `ad_events` and `ad_changes`. */
  static Dataset<Row> counts(SparkSession spark) {
    CampaignCounts.of(spark.sql(COUNTS)).createOrReplaceTempView("counts_of_campaigns");
    return spark.sql(MESSAGES);
  }
}
