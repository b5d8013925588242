package racetrack.apex;

import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.api.Sink;
import java.util.ArrayList;
import java.util.List;

/** What an operator emits. */
final class Heard<T> implements Sink<Object> {
  final List<T> tuples = new ArrayList<>();

  static <T> Heard<T> of(DefaultOutputPort<T> port) {
    Heard<T> heard = new Heard<>();
    port.setSink(heard);
    return heard;
  }

  @Override
  @SuppressWarnings("unchecked")
  public void put(Object tuple) {
    tuples.add((T) tuple);
  }

  @Override
  public int getCount(boolean reset) {
    return tuples.size();
  }
}
