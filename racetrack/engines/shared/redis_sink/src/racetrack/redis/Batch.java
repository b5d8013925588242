package racetrack.redis;

import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/** Counts since the last write to Redis. Not thread-safe. */
public final class Batch {
  private static final long WINDOW_MS = 10_000;

  /** A campaign, and a window of ten seconds that begins at `startMs` (epoch ms). */
  public record Window(String campaign, long startMs) {}

  private final Map<Window, Long> views = new HashMap<>();
  private final Map<Integer, Done> done = new HashMap<>();

  /** Counts a view, however late it arrives: no window is ever closed. */
  public void countView(String campaign, long eventTimeMs) {
    views.merge(new Window(campaign, eventTimeMs - eventTimeMs % WINDOW_MS), 1L, Long::sum);
  }

  /** Adds progress, which will be reported when this batch is written. */
  public void countDone(Done more) {
    done.merge(more.partition(), more, Done::plus);
  }

  Map<Window, Long> views() {
    return Collections.unmodifiableMap(views);
  }

  Collection<Done> done() {
    return Collections.unmodifiableCollection(done.values());
  }

  boolean isEmpty() {
    return views.isEmpty() && done.isEmpty();
  }

  void clear() {
    views.clear();
    done.clear();
  }
}
