package racetrack.apex;

import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.common.util.BaseOperator;
import java.util.HashMap;
import java.util.Map;
import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/**
 * Lets views pass. A view takes along how many events of its partition were left out before it, so
 * that they count as done when the view does, and not earlier; what is left at the end of a
 * streaming window goes by itself.
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

  /** Empty at a checkpoint, which is at the end of a window. */
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
