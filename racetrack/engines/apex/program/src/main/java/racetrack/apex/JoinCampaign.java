package racetrack.apex;

import com.datatorrent.api.Context.OperatorContext;
import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.common.util.BaseOperator;
import racetrack.redis.Campaigns;

/** Adds to each view the campaign of its ad. */
public final class JoinCampaign extends BaseOperator {
  public final transient DefaultOutputPort<View> output = new DefaultOutputPort<>();

  public final transient DefaultInputPort<View> input =
      new DefaultInputPort<>() {
        @Override
        public void process(View view) {
          String campaign = view.ad() == null ? null : campaigns.of(view.ad());
          output.emit(new View(view.ad(), view.timeMs(), campaign, view.done()));
        }
      };

  private String redisHost;
  private int redisPort;
  private transient Campaigns campaigns;

  /** For Kryo, which creates operators from a checkpoint. */
  public JoinCampaign() {}

  JoinCampaign(String redisHost, int redisPort) {
    this.redisHost = redisHost;
    this.redisPort = redisPort;
  }

  @Override
  public void setup(OperatorContext context) {
    campaigns = new Campaigns(redisHost, redisPort);
  }

  @Override
  public void teardown() {
    campaigns.close();
  }
}
