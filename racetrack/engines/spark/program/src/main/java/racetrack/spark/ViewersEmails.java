package racetrack.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
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
 * Joins the last views of profiles with the emails of their viewers. It keeps the views of each
 * viewer that are shown now, and emits them again when the viewer's email changes.
 */
final class ViewersEmails extends Keyed<Long> {
  private static final long serialVersionUID = 1;
  /** `is_moved`: it enters or leaves the view; otherwise only an email changed. */
  private static final StructType ENRICHED =
      StructType.fromDDL(
          "owner_id BIGINT, viewer_id BIGINT, received_at BIGINT, partition INT, offset BIGINT,"
              + " owner_email STRING, viewer_email STRING, is_shown BOOLEAN, is_moved BOOLEAN");

  private transient ValueState<String> email;
  /** Partition and offset → the view. */
  private transient MapState<String, Row> shown;

  /** `views` are those of `LastViews`. */
  static Dataset<Row> joinedWith(Dataset<Row> views) {
    return new ViewersEmails()
        .madeOf(views, "viewer_id", Encoders.LONG(), TimeMode.None(), ENRICHED);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    email = text("email");
    shown = map("shown", Encoders.STRING(), Encoders.row(LastViews.CHANGE));
  }

  @Override
  public Iterator<Row> handleInputRows(Long viewer, Iterator<Row> rows, TimerValues time) {
    Set<String> moved = new HashSet<>();
    List<Row> changed = new ArrayList<>();
    boolean isRenamed = false;
    while (rows.hasNext()) {
      Row row = rows.next();
      if (row.<Boolean>getAs("is_user")) {
        isRenamed = true;
        set(email, row.getAs("email"));
      } else {
        changed.add(row);
        if (keep(row)) {
          moved.add(placeOf(row));
        }
      }
    }
    if (isRenamed) {
      changed.removeIf(row -> row.getAs("is_shown"));
      CollectionConverters.asJava(shown.values()).forEachRemaining(changed::add);
    }
    String viewerEmail = email.get();
    return CollectionConverters.asScala(
        changed.stream()
            .map(row -> enriched(row, viewerEmail, moved.contains(placeOf(row))))
            .iterator());
  }

  /** Returns whether the view enters or leaves those that are shown. */
  private boolean keep(Row view) {
    String place = placeOf(view);
    boolean wasShown = shown.containsKey(place);
    if (view.<Boolean>getAs("is_shown")) {
      shown.updateValue(place, view);
      return !wasShown;
    }
    shown.removeKey(place);
    return true;
  }

  private static String placeOf(Row view) {
    return view.getAs("partition") + "/" + view.getAs("offset");
  }

  private static Row enriched(Row view, String viewerEmail, boolean isMoved) {
    return RowFactory.create(
        view.getAs("owner_id"), view.getAs("viewer_id"), view.getAs("received_at"),
        view.getAs("partition"), view.getAs("offset"), view.getAs("email"), viewerEmail,
        view.getAs("is_shown"), isMoved);
  }
}
