package racetrack.storm;

import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import racetrack.redis.Campaigns;

/** Adds to each view the campaign of its ad. */
final class JoinCampaign extends BaseBasicBolt {
  static final String CAMPAIGN = "campaign_id";

  private final Settings settings;
  private transient Campaigns campaigns;

  JoinCampaign(Settings settings) {
    this.settings = settings;
  }

  @Override
  public void prepare(Map<String, Object> config, TopologyContext context) {
    campaigns = new Campaigns(settings.redisHost(), settings.redisPort());
  }

  @Override
  public void execute(Tuple view, BasicOutputCollector collector) {
    String ad = view.getStringByField(Deserialize.AD);
    String campaign = ad == null ? null : campaigns.of(ad);
    collector.emit(
        new Values(
            campaign,
            ad,
            view.getValueByField(Deserialize.TIME),
            view.getValueByField(Deserialize.DONE)));
  }

  @Override
  public void declareOutputFields(OutputFieldsDeclarer declarer) {
    declarer.declare(
        new Fields(CAMPAIGN, Deserialize.AD, Deserialize.TIME, Deserialize.DONE));
  }

  @Override
  public void cleanup() {
    campaigns.close();
  }
}
