package racetrack.upsert;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** What all engines' views of a workload hold, after what is changed and what is taken back. */
public abstract class ViewsContract<S extends Stage> {
  protected S stage;

  protected abstract S open() throws Exception;

  @BeforeEach
  void begin() throws Exception {
    stage = open();
  }

  @AfterEach
  void end() throws Exception {
    stage.close();
  }
}
