package racetrack.apex;

import com.datatorrent.netlet.DefaultEventLoop;
import com.datatorrent.stram.engine.StreamingContainer;
import java.io.IOException;
import java.lang.reflect.Field;

/**
 * Makes Apex' buffer server listen on the loopback address only. The server always binds to all
 * addresses, so this class changes the task that opens the server's socket before the task runs.
 */
final class LoopbackEventLoop extends DefaultEventLoop {
  private static final String LOOPBACK = "127.0.0.1";
  private static final String FIELD_OF_TASK = "val$host";

  private LoopbackEventLoop() throws IOException {
    super("ProcessWideEventLoop");
  }

  /** Installs the event loop. Call this before any code of Apex runs. */
  static void install() throws IOException {
    StreamingContainer.eventloop = new LoopbackEventLoop();
  }

  @Override
  public void submit(Runnable task) {
    for (Field field : task.getClass().getDeclaredFields()) {
      if (field.getName().equals(FIELD_OF_TASK)) {
        setIfNull(field, task);
      }
    }
    super.submit(task);
  }

  private static void setIfNull(Field field, Runnable task) {
    try {
      field.setAccessible(true);
      if (field.get(task) == null) {
        field.set(task, LOOPBACK);
      }
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }
}
