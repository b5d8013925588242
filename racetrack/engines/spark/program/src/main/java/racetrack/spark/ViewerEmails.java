package racetrack.spark;

import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.ValueState;

/**
 * Adds the viewer's email to the last views of profiles, keyed by viewer: keeps all views in which
 * the viewer appears, and emits them again if the email changes.
 */
final class ViewerEmails extends Keyed<Long> {
  private static final long serialVersionUID = 1;
  private static final String PLACE = "partition INT, offset BIGINT";
  private static final String VIEW = "owner_id BIGINT, received_at BIGINT, owner_email STRING";

  private transient ValueState<String> emailOf;
  /** Place of a pageview in its topic → the view; only views that are among the last ten. */
  private transient MapState<Row, Row> shown;

  static Dataset<Row> of(Dataset<Row> viewsAndUsers) {
    return new ViewerEmails().over(viewsAndUsers, "id", Encoders.LONG());
  }

  @Override
  String columns() {
    return PLACE + ", " + VIEW + ", viewer_id BIGINT, viewer_email STRING, is_shown BOOLEAN";
  }

  @Override
  public void init(OutputMode mode, TimeMode time) {
    emailOf = value("email", Encoders.STRING());
    shown = map("shown", row(PLACE), row(VIEW));
  }

  @Override
  Collection<Row> take(Long viewer, Iterator<Row> rows, long nowMs) {
    String emailBefore = emailOf.get();
    Email email = new Email(emailBefore);
    // Each view is written once, although both it and the email may have changed.
    Map<Row, Row> changed = new LinkedHashMap<>();
    while (rows.hasNext()) {
      Row row = rows.next();
      if (!email.take(row)) {
        keep(row, changed);
      }
    }
    if (!Objects.equals(email.newest(), emailBefore)) {
      if (email.newest() == null) {
        emailOf.clear();
      } else {
        emailOf.update(email.newest());
      }
      forEach(shown, changed::put);
    }
    return changed.entrySet().stream()
        .map(each -> output(each.getKey(), each.getValue(), viewer, email.newest()))
        .toList();
  }

  private void keep(Row row, Map<Row, Row> changed) {
    Row place = RowFactory.create(row.getAs("partition"), row.getAs("offset"));
    Row view = null;
    if (row.<Boolean>getAs("is_shown")) {
      view =
          RowFactory.create(
              row.getAs("owner_id"), row.getAs("received_at"), row.getAs("owner_email"));
      shown.updateValue(place, view);
    } else {
      shown.removeKey(place);
    }
    changed.put(place, view);
  }

  private static Row output(Row place, Row view, long viewer, String email) {
    return view == null
        ? RowFactory.create(place.get(0), place.get(1), null, null, null, viewer, email, false)
        : RowFactory.create(
            place.get(0), place.get(1), view.get(0), view.get(1), view.get(2), viewer, email, true);
  }
}
