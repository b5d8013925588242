package racetrack.storm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;
import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/**
 * Drops all events except views. Each view carries the number of events of its partition that were
 * dropped before it, so that these count as done only when the view does.
 */
final class KeepViews extends BaseRichBolt {
  /**
   * Events of a partition that were dropped since its last view. The first of them is acknowledged
   * only with the next view. Until then, the committed offset stays before it, so that all of these
   * events are read again after a kill.
   */
  private record LeftOut(Tuple first, Done done) {
    LeftOut plus(LeftOut next) {
      return new LeftOut(first, done.plus(next.done));
    }
  }

  private final Map<Integer, LeftOut> leftOut = new HashMap<>();
  private transient OutputCollector collector;

  @Override
  public void prepare(Map<String, Object> config, TopologyContext context, OutputCollector out) {
    collector = out;
  }

  @Override
  public void execute(Tuple event) {
    if (TupleUtils.isTick(event)) {
      List.copyOf(leftOut.keySet()).forEach(this::passWithoutView);
      collector.ack(event);
    } else if (event.getStringByField(Deserialize.TYPE).equals(AdEvent.VIEW)) {
      pass(event);
    } else {
      leaveOut(event);
    }
  }

  private void pass(Tuple view) {
    Done done = doneBy(view);
    LeftOut before = leftOut.remove(done.partition());
    if (before == null) {
      emit(List.of(view), view.getValues(), done);
    } else {
      emit(List.of(view, before.first), view.getValues(), done.plus(before.done));
    }
  }

  private void leaveOut(Tuple event) {
    LeftOut one = new LeftOut(event, doneBy(event));
    LeftOut all = leftOut.merge(one.done.partition(), one, LeftOut::plus);
    if (all.first != event) {
      collector.ack(event);
    }
  }

  /** Emits the number of dropped events without a view, if none arrives for a while. */
  private void passWithoutView(int partition) {
    LeftOut before = leftOut.remove(partition);
    List<Object> noView = Arrays.asList(new Object[Deserialize.FIELDS.size()]);
    emit(List.of(before.first), noView, before.done);
  }

  private void emit(List<Tuple> anchors, List<Object> values, Done done) {
    List<Object> fields = new ArrayList<>(values);
    fields.set(Deserialize.FIELDS.fieldIndex(Deserialize.DONE), done);
    collector.emit(anchors, fields);
    anchors.forEach(collector::ack);
  }

  private static Done doneBy(Tuple event) {
    return (Done) event.getValueByField(Deserialize.DONE);
  }

  @Override
  public void declareOutputFields(OutputFieldsDeclarer declarer) {
    declarer.declare(Deserialize.FIELDS);
  }

  @Override
  public Map<String, Object> getComponentConfiguration() {
    return Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1);
  }
}
