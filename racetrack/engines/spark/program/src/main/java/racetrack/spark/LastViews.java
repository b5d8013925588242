package racetrack.spark;

import static java.util.stream.Collectors.toList;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.ValueState;

/**
 * The last ten views of each profile, keyed by owner: emits each view that enters or leaves the
 * list, and all views of the list if the owner's email changes.
 *
 * <p>The input are pageviews of profiles and changes of users; only the latter have a column
 * `email_at`, which puts them in order.
 */
final class LastViews extends Keyed<Long> {
  private static final long serialVersionUID = 1;
  private static final int LIMIT = 10;
  private static final String VIEW =
      "viewer_id BIGINT, received_at BIGINT, partition INT, offset BIGINT";
  /** Last means the greatest time; partition and offset decide between views of the same time. */
  private static final Comparator<Row> BY_TIME =
      Comparator.<Row>comparingLong(view -> view.getLong(1))
          .thenComparing(view -> view.getInt(2))
          .thenComparing(view -> view.getLong(3));

  /** The last views, with the columns of `VIEW`, and the owner's email. */
  private transient ValueState<Row> last;

  static Dataset<Row> of(Dataset<Row> viewsAndUsers) {
    return new LastViews().over(viewsAndUsers, "id", Encoders.LONG());
  }

  @Override
  String columns() {
    return VIEW + ", owner_id BIGINT, owner_email STRING, is_shown BOOLEAN";
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    last = value("last", row("views ARRAY<STRUCT<" + VIEW + ">>, email STRING"));
  }

  @Override
  Collection<Row> take(Long owner, Iterator<Row> rows, long nowMs) {
    Row state = last.get();
    List<Row> before = state == null ? List.of() : state.getList(0);
    String emailBefore = state == null ? null : state.getString(1);
    List<Row> all = new ArrayList<>(before);
    Email email = new Email(emailBefore);
    while (rows.hasNext()) {
      Row row = rows.next();
      if (!email.take(row)) {
        Row view =
            RowFactory.create(
                row.getAs("viewer_id"), row.getAs("received_at"), row.getAs("partition"),
                row.getAs("offset"));
        all.add(view);
      }
    }
    List<Row> now =
        all.stream().distinct().sorted(BY_TIME.reversed()).limit(LIMIT).collect(toList());
    if (now.equals(before) && Objects.equals(email.newest(), emailBefore)) {
      return List.of();
    }
    last.update(RowFactory.create(now.toArray(new Row[0]), email.newest()));
    return changes(owner, before, now, email.newest(), !Objects.equals(email.newest(), emailBefore));
  }

  private static List<Row> changes(
      long owner, List<Row> before, List<Row> now, String email, boolean isNewEmail) {
    List<Row> changes = new ArrayList<>();
    for (Row view : before) {
      if (!now.contains(view)) {
        changes.add(change(owner, view, email, false));
      }
    }
    for (Row view : now) {
      if (isNewEmail || !before.contains(view)) {
        changes.add(change(owner, view, email, true));
      }
    }
    return changes;
  }

  private static Row change(long owner, Row view, String email, boolean isShown) {
    return RowFactory.create(
        view.get(0), view.get(1), view.get(2), view.get(3), owner, email, isShown);
  }
}
