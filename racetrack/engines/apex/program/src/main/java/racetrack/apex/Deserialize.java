package racetrack.apex;

import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.common.util.BaseOperator;
import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/** Parses the JSON of an event. */
public final class Deserialize extends BaseOperator {
  public final transient DefaultOutputPort<Event> output = new DefaultOutputPort<>();

  public final transient DefaultInputPort<Message> input =
      new DefaultInputPort<>() {
        @Override
        public void process(Message message) {
          AdEvent said =
              AdEvent.parseOrEnd(message.value(), message.partition(), message.offset());
          output.emit(new Event(said, new Done(message.partition(), 1, said.eventTime())));
        }
      };
}
