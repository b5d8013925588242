package racetrack.storm;

import java.util.List;
import org.apache.storm.Constants;
import org.apache.storm.Testing;
import org.apache.storm.testing.MkTupleParam;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import racetrack.redis.Done;

/** Tuples as the stages get them. */
final class Tuples {
  private Tuples() {}

  /** As `Deserialize` emits it. */
  static Tuple event(String type, int partition, long timeMs) {
    return of(
        new Values("u", "p", "ad", "mail", type, timeMs, "ip", new Done(partition, 1, timeMs)),
        Deserialize.FIELDS.toList());
  }

  /** As `JoinCampaign` emits it. */
  static Tuple joined(String campaign, long timeMs, Done done) {
    return of(
        new Values(campaign, "ad", timeMs, done),
        List.of(JoinCampaign.CAMPAIGN, Deserialize.AD, Deserialize.TIME, Deserialize.DONE));
  }

  static Tuple tick() {
    MkTupleParam param = new MkTupleParam();
    param.setComponent(Constants.SYSTEM_COMPONENT_ID);
    param.setStream(Constants.SYSTEM_TICK_STREAM_ID);
    return Testing.testTuple(new Values(1), param);
  }

  private static Tuple of(Values values, List<String> names) {
    MkTupleParam param = new MkTupleParam();
    param.setFieldsList(names);
    return Testing.testTuple(values, param);
  }
}
