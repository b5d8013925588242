package racetrack.storm;

import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;

/** Keeps only the fields that later stages need. */
final class Project extends BaseBasicBolt {
  private static final Fields KEPT =
      new Fields(Deserialize.AD, Deserialize.TIME, Deserialize.DONE);

  @Override
  public void execute(Tuple view, BasicOutputCollector collector) {
    collector.emit(view.select(KEPT));
  }

  @Override
  public void declareOutputFields(OutputFieldsDeclarer declarer) {
    declarer.declare(KEPT);
  }
}
