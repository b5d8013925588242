package racetrack.spark;

import static java.util.Comparator.comparing;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.ListState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keeps the last ten views of each profile, and its owner's email. It emits a row for each view that
 * enters or leaves the ten, and for all ten when the email changes.
 *
 * <p>Changed emails pass through, for `ViewersEmails`, which joins them as those of viewers.
 */
final class LastViews extends Keyed<Long> {
  private static final long serialVersionUID = 1;
  private static final int LENGTH = 10;
  private static final StructType VIEW =
      StructType.fromDDL("viewer_id BIGINT, received_at BIGINT, partition INT, offset BIGINT");
  /** For a user, `viewer_id` and `email` are its own; otherwise `email` is the profile owner's. */
  static final StructType CHANGE =
      StructType.fromDDL(
          "viewer_id BIGINT, received_at BIGINT, partition INT, offset BIGINT, owner_id BIGINT,"
              + " email STRING, is_user BOOLEAN, is_shown BOOLEAN");

  private transient ValueState<String> email;
  private transient ListState<Row> last;

  private record View(long viewer, long receivedAt, int partition, long offset) {
    private static final Comparator<View> NEWEST_FIRST =
        comparing(View::receivedAt)
            .thenComparing(View::partition)
            .thenComparing(View::offset)
            .reversed();

    static View of(Row row) {
      return new View(
          row.getAs("viewer_id"), row.getAs("received_at"), row.getAs("partition"),
          row.getAs("offset"));
    }

    Row asRow() {
      return RowFactory.create(viewer, receivedAt, partition, offset);
    }

    Row changed(long owner, String email, boolean isShown) {
      return RowFactory.create(
          viewer, receivedAt, partition, offset, owner, email, false, isShown);
    }
  }

  /**
   * `changes` have the columns `profile_id`, `viewer_id`, `received_at`, `partition`, `offset`,
   * `email` and `is_user`. A change of a user has its id as `profile_id` and `viewer_id`.
   */
  static Dataset<Row> of(Dataset<Row> changes) {
    return new LastViews()
        .madeOf(changes, "profile_id", Encoders.LONG(), TimeMode.None(), CHANGE);
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    email = text("email");
    last = getHandle().getListState("last", Encoders.row(VIEW), TTLConfig.NONE());
  }

  @Override
  public Iterator<Row> handleInputRows(Long profile, Iterator<Row> rows, TimerValues time) {
    List<View> before = new ArrayList<>();
    CollectionConverters.asJava(last.get()).forEachRemaining(row -> before.add(View.of(row)));
    List<View> views = new ArrayList<>(before);
    Row user = null;
    while (rows.hasNext()) {
      Row row = rows.next();
      if (!row.<Boolean>getAs("is_user")) {
        views.add(View.of(row));
      } else if (user == null || row.<Long>getAs("offset") > user.<Long>getAs("offset")) {
        user = row;
      }
    }
    views.sort(View.NEWEST_FIRST);
    List<View> now = views.subList(0, Math.min(LENGTH, views.size()));
    List<Row> changes = new ArrayList<>();
    boolean isRenamed = user != null && !Objects.equals(email.get(), user.getAs("email"));
    if (isRenamed) {
      set(email, user.getAs("email"));
      changes.add(
          RowFactory.create(profile, null, null, null, null, email.get(), true, true));
    }
    change(profile, before, now, isRenamed, changes);
    return CollectionConverters.asScala(changes.iterator());
  }

  private void change(
      long owner, List<View> before, List<View> now, boolean isRenamed, List<Row> changes) {
    String ownerEmail = email.get();
    for (View view : before) {
      if (!now.contains(view)) {
        changes.add(view.changed(owner, ownerEmail, false));
      }
    }
    for (View view : now) {
      if (isRenamed || !before.contains(view)) {
        changes.add(view.changed(owner, ownerEmail, true));
      }
    }
    if (!now.equals(before)) {
      last.put(now.stream().map(View::asRow).toArray(Row[]::new));
    }
  }
}
