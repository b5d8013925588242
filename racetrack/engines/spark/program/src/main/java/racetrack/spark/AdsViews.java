package racetrack.spark;

import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.StreamingQueryException;

/**
 * Yahoo's streaming benchmark on Spark Structured Streaming: counts how often ads were viewed, by
 * campaign and window of ten seconds.
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
  private static final List<String> PROGRESS = List.of("ad_events_progress", "ad_events_summary");
  static final String UNKNOWN_AD = "No campaign is known of the ad ";

  /** Query for all ads when the program starts: the newest row of each ad. */
  static final String CAMPAIGNS =
      """
      SELECT ad.* FROM (
        SELECT from_json(max_by(debezium_row(value), offset), 'ad_id STRING, campaign_id STRING') AS ad
        FROM ad_changes
        GROUP BY key
      )
      WHERE ad IS NOT NULL
      """;

  /**
   * A query that emits rows whenever they change may contain only one aggregation. So this
   * aggregation counts by window, by partition (progress) and in total (summary); its rows from one
   * micro-batch are consistent.
   *
   * <p>The start of a window is part of an ordinary key: without a watermark, no window is ever
   * closed. An event with an unknown ad ends the query, which is started again at this micro-batch
   * with the ads known by then. A message that is not JSON ends the query for good, so that no
   * measurement continues with wrong counts.
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
      of_campaigns AS (
        SELECT partition, event.event_time AS event_time,
          CASE WHEN event.event_type = 'view' THEN
            coalesce(campaign_id, raise_error(concat('%s', event.ad_id)))
          END AS campaign_id,
          event.event_time - event.event_time %% 10000 AS window_start_ms
        FROM events LEFT JOIN campaign_of ON ad_id = event.ad_id AND event.event_type = 'view'
      ),
      counts AS (
        SELECT partition, campaign_id, window_start_ms,
          count(*) AS total, max(event_time) AS max_received_at,
          CASE
            WHEN grouping(window_start_ms) = 0 THEN 'spark.campaign_windows'
            WHEN grouping(partition) = 0 THEN 'spark.ad_events_progress'
            ELSE 'spark.ad_events_summary'
          END AS topic
        FROM of_campaigns
        GROUP BY GROUPING SETS ((campaign_id, window_start_ms), (partition), ())
      )
      SELECT topic,
        CASE topic
          WHEN 'spark.campaign_windows' THEN to_json(struct(campaign_id, window_start_ms))
          WHEN 'spark.ad_events_progress' THEN to_json(struct(partition))
          ELSE '"all"'
        END AS key,
        CASE topic
          WHEN 'spark.campaign_windows' THEN
            to_json(struct(campaign_id, window_start_ms, total AS seen_count))
          WHEN 'spark.ad_events_progress' THEN to_json(struct(partition, total, max_received_at))
          ELSE to_json(struct('all' AS summary_of, total, max_received_at))
        END AS value
      FROM counts
      WHERE topic != 'spark.campaign_windows' OR campaign_id IS NOT NULL
      """
          .formatted(UNKNOWN_AD);

  @Override
  public List<String> inputs() {
    return List.of(EVENTS, TABLES.get(0), TABLES.get(1));
  }

  @Override
  public List<String> views() {
    return List.of("campaigns", "ads", "campaign_windows", "ad_events_progress", summary());
  }

  @Override
  public String summary() {
    return "ad_events_summary";
  }

  @Override
  public boolean mayGoOn(StreamingQueryException error) {
    // Use the message of the cause: the error's own message contains the text of the query, and
    // with it these words.
    return error.getCause() != null && error.getCause().getMessage().contains(UNKNOWN_AD);
  }

  @Override
  public List<DataStreamWriter<Row>> queries(Kafka kafka) {
    kafka.table(ADS).createOrReplaceTempView("ad_changes");
    kafka.stream(EVENTS).createOrReplaceTempView("ad_events");
    return List.of(
        kafka.mirror(TABLES), kafka.toTopicsInOrder("counts", counts(kafka.spark()), PROGRESS));
  }

  /** Computes the counts from the temporary views `ad_events` and `ad_changes`. */
  static Dataset<Row> counts(SparkSession spark) {
    Dataset<Row> ads = spark.sql(CAMPAIGNS);
    // Read the ads only once: otherwise Spark would read their topic again for each micro-batch.
    spark.createDataFrame(ads.collectAsList(), ads.schema()).createOrReplaceTempView("campaign_of");
    return spark.sql(COUNTS);
  }
}
