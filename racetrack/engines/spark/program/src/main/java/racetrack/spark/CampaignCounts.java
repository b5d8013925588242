package racetrack.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Turns the counts of an ad into changes of the counts of its campaign. If the ad moves to another
 * campaign, all its counts follow. The counts of an ad without a campaign wait for one.
 *
 * <p>Rows that count no ad (progress) pass unchanged.
 */
final class CampaignCounts extends Keyed<String> {
  private static final long serialVersionUID = 1;
  private static final StructType OUTPUT =
      StructType.fromDDL(
          "campaign_id STRING, window_start_ms BIGINT, partition INT, total BIGINT,"
              + " max_received_at BIGINT");

  private transient ValueState<String> campaignOf;
  /** Start of a window → number of the ad's views in it. */
  private transient MapState<Long, Long> counts;

  static Dataset<Row> of(Dataset<Row> rows) {
    return new CampaignCounts()
        .madeOf(rows, "ad_id", Encoders.STRING(), TimeMode.None(), OUTPUT);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    campaignOf = text("campaign");
    counts = map("counts", Encoders.LONG(), Encoders.LONG());
  }

  @Override
  public Iterator<Row> handleInputRows(String ad, Iterator<Row> rows, TimerValues time) {
    List<Row> changes = new ArrayList<>();
    Map<Long, Long> counted = new TreeMap<>();
    Row move = null;
    while (rows.hasNext()) {
      Row row = rows.next();
      if (!row.isNullAt(row.fieldIndex("changed_at"))) {
        move = move == null || changedAt(row) > changedAt(move) ? row : move;
      } else if (!row.isNullAt(row.fieldIndex("window_start_ms"))) {
        counted.put(row.getAs("window_start_ms"), row.getAs("total"));
      } else {
        changes.add(
            RowFactory.create(
                null, null, row.getAs("partition"), row.getAs("total"),
                row.getAs("max_received_at")));
      }
    }
    String campaign = campaignOf.get();
    count(campaign, counted, changes);
    if (move != null && !Objects.equals(campaign, move.getAs("campaign_id"))) {
      move(campaign, move.getAs("campaign_id"), changes);
    }
    return CollectionConverters.asScala(changes.iterator());
  }

  private void count(String campaign, Map<Long, Long> counted, List<Row> changes) {
    counted.forEach(
        (window, now) -> {
          Long before = counts.getValue(window);
          add(campaign, window, before == null ? now : now - before, changes);
          counts.updateValue(window, now);
        });
  }

  private void move(String from, String to, List<Row> changes) {
    var all = counts.iterator();
    while (all.hasNext()) {
      var each = all.next();
      add(from, each._1(), -each._2(), changes);
      add(to, each._1(), each._2(), changes);
    }
    set(campaignOf, to);
  }

  private static void add(String campaign, long window, long views, List<Row> changes) {
    if (campaign != null) {
      changes.add(RowFactory.create(campaign, window, null, views, null));
    }
  }

  private static long changedAt(Row row) {
    return row.<Long>getAs("changed_at");
  }
}
