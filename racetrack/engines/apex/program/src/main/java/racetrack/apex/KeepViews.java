package racetrack.apex;

import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.common.util.BaseOperator;
import java.util.HashMap;
import java.util.Map;
import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/**
 * Drops all events except views. Each view carries the number of events of its partition that were
 * dropped before it, so that these count as done only when the view does. If events were dropped
 * after the last view of a streaming window, their number is emitted without a view.
 */
public final class KeepViews extends BaseOperator {
  public final transient DefaultOutputPort<Event> output = new DefaultOutputPort<>();

  public final transient DefaultInputPort<Event> input =
      new DefaultInputPort<>() {
        @Override
        public void process(Event event) {
          take(event);
        }
      };

  /**
   * Partition → dropped events since the last view. Transient, because it is empty at the end of
   * each window, and checkpoints are made only then.
   */
  private final transient Map<Integer, Done> leftOut = new HashMap<>();

  private void take(Event event) {
    Done done = event.done();
    if (event.said().eventType().equals(AdEvent.VIEW)) {
      Done before = leftOut.remove(done.partition());
      output.emit(before == null ? event : new Event(event.said(), done.plus(before)));
    } else {
      leftOut.merge(done.partition(), done, Done::plus);
    }
  }

  @Override
  public void endWindow() {
    leftOut.values().forEach(done -> output.emit(new Event(null, done)));
    leftOut.clear();
  }
}
