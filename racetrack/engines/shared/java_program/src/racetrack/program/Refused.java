package racetrack.program;

/** A message that a program can't take, as the harness reads it (racetrack/probes/refused_input.py). */
public record Refused(String topic, int partition, long offset, Throwable error) {
  /** One line for the program's output. */
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

  /** Ends the program: an engine that restarts what has failed would fail again and again. */
  public void end() {
    print();
    // Not exit(): its hooks may wait for the thread that calls this.
    Runtime.getRuntime().halt(1);
  }
}
