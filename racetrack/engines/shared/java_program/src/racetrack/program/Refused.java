package racetrack.program;

/**
 * A message that the program can't process. The harness parses `line`
 * (racetrack/probes/refused_input.py).
 */
public record Refused(String topic, int partition, long offset, Throwable error) {
  /** The line to print, which names the message and the error. */
  public String line() {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    String[] words = String.valueOf(cause.getMessage()).split("\\s*\\R");
    return "RACETRACK refused topic=%s, partition=%d, offset=%d, field=, reason=%s: %s"
        .formatted(topic, partition, offset, cause.getClass().getSimpleName(), words[0]);
  }

  public void print() {
    System.out.println(line());
    System.out.flush();
  }

  /**
   * Prints the line and ends the program. Otherwise the engine might restart the failed task, which
   * would fail again and again.
   */
  public void end() {
    print();
    // Not exit(): its hooks may wait for the thread that calls this.
    Runtime.getRuntime().halt(1);
  }
}
