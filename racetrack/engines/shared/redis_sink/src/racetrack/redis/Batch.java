package racetrack.redis;

import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/** Counts since the last flush. For one thread. */
public final class Batch {
  private static final long WINDOW_MS = 10_000;

  /** A campaign, and the ten seconds that begin then (epoch ms). */
  public record Window(String campaign, long startMs) {}

  private final Map<Window, Long> views = new HashMap<>();
  private final Map<Integer, Done> done = new HashMap<>();

  /** Counts a view. No window is ever closed: it counts however late it is. */
  public void countView(String campaign, long eventTimeMs) {
    views.merge(new Window(campaign, eventTimeMs - eventTimeMs % WINDOW_MS), 1L, Long::sum);
  }

  /** Says what is done once this batch is written. */
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
