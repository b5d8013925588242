package racetrack.spark;

import org.apache.spark.sql.Row;

/** The newest email of a user: that of the change with the greatest `email_at`. */
final class Email {
  private String newest;
  private long newestAt = -1;

  Email(String before) {
    newest = before;
  }

  /** Returns false if the row is no change of a user. */
  boolean take(Row row) {
    if (row.isNullAt(row.fieldIndex("email_at"))) {
      return false;
    }
    long at = row.<Long>getAs("email_at");
    if (at > newestAt) {
      newest = row.getAs("email");
      newestAt = at;
    }
    return true;
  }

  /** The email; null if there is no such user. */
  String newest() {
    return newest;
  }
}
