package racetrack.apex;

import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.common.util.BaseOperator;

/** Keeps only the fields that later operators need. */
public final class Project extends BaseOperator {
  public final transient DefaultOutputPort<View> output = new DefaultOutputPort<>();

  public final transient DefaultInputPort<Event> input =
      new DefaultInputPort<>() {
        @Override
        public void process(Event event) {
          output.emit(
              event.said() == null
                  ? new View(null, 0, null, event.done())
                  : new View(event.said().adId(), event.said().eventTime(), null, event.done()));
        }
      };
}
