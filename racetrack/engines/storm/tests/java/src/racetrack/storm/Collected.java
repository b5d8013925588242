package racetrack.storm;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.Tuple;

/** What a bolt emits and acknowledges; it may do nothing else. */
final class Collected {
  record Emitted(Collection<Tuple> anchors, List<Object> values) {}

  final List<Emitted> emitted = new ArrayList<>();
  final List<Tuple> acked = new ArrayList<>();

  OutputCollector collector() {
    Class<?>[] types = {IOutputCollector.class};
    Object proxy = Proxy.newProxyInstance(getClass().getClassLoader(), types, this::called);
    return new OutputCollector((IOutputCollector) proxy);
  }

  @SuppressWarnings("unchecked")
  private Object called(Object proxy, Method method, Object... of) {
    switch (method.getName()) {
      case "emit" ->
          emitted.add(
              new Emitted(List.copyOf((Collection<Tuple>) of[1]), (List<Object>) of[2]));
      case "ack" -> acked.add((Tuple) of[0]);
      default -> throw new UnsupportedOperationException(method.getName());
    }
    return method.getName().equals("emit") ? List.of() : null;
  }
}
