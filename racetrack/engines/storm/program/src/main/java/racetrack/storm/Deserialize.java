package racetrack.storm;

import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/** Parses the JSON of an event into fields. */
final class Deserialize extends BaseBasicBolt {
  static final String AD = "ad_id";
  static final String TYPE = "event_type";
  static final String TIME = "event_time";
  /** Field with the progress to report once the tuple is processed: see `KeepViews`. */
  static final String DONE = "done";

  static final Fields FIELDS =
      new Fields("user_id", "page_id", AD, "ad_type", TYPE, TIME, "ip_address", DONE);

  @Override
  public void execute(Tuple message, BasicOutputCollector collector) {
    AdEvent event =
        AdEvent.parseOrEnd(
            message.getBinaryByField("value"),
            message.getIntegerByField("partition"),
            message.getLongByField("offset"));
    collector.emit(
        new Values(
            event.userId(),
            event.pageId(),
            event.adId(),
            event.adType(),
            event.eventType(),
            event.eventTime(),
            event.ipAddress(),
            new Done(message.getIntegerByField("partition"), 1, event.eventTime())));
  }

  @Override
  public void declareOutputFields(OutputFieldsDeclarer declarer) {
    declarer.declare(FIELDS);
  }
}
