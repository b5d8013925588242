package racetrack.storm;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.tuple.Tuple;

/** What a bolt emits and acknowledges. */
final class Collected implements IOutputCollector {
  record Emitted(List<Tuple> anchors, List<Object> values) {}

  final List<Emitted> emitted = new ArrayList<>();
  final List<Tuple> acked = new ArrayList<>();

  @Override
  public List<Integer> emit(String stream, Collection<Tuple> anchors, List<Object> values) {
    emitted.add(new Emitted(List.copyOf(anchors), values));
    return List.of();
  }

  @Override
  public void ack(Tuple input) {
    acked.add(input);
  }

  @Override
  public void emitDirect(
      int task, String stream, Collection<Tuple> anchors, List<Object> values) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void fail(Tuple input) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void resetTimeout(Tuple input) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void flush() {}

  @Override
  public void reportError(Throwable error) {
    throw new IllegalStateException(error);
  }
}
