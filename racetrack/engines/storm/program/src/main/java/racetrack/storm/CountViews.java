package racetrack.storm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.storm.Config;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;
import racetrack.redis.Batch;
import racetrack.redis.Done;
import racetrack.redis.RedisSink;

/**
 * Counts views by campaign and window, and writes the counts to Redis at intervals. A tuple is
 * acknowledged once its count is in Redis.
 */
final class CountViews extends BaseRichBolt {
  private final Settings settings;
  private transient OutputCollector collector;
  private transient RedisSink sink;
  private transient Batch batch;
  private transient List<Tuple> counted;
  private transient long flushedNs;

  CountViews(Settings settings) {
    this.settings = settings;
  }

  @Override
  public void prepare(Map<String, Object> config, TopologyContext context, OutputCollector out) {
    collector = out;
    sink = new RedisSink(settings.redisHost(), settings.redisPort());
    batch = new Batch();
    counted = new ArrayList<>();
    flushedNs = System.nanoTime();
  }

  @Override
  public void execute(Tuple tuple) {
    if (TupleUtils.isTick(tuple)) {
      collector.ack(tuple);
    } else {
      count(tuple);
    }
    long nowNs = System.nanoTime();
    if (nowNs - flushedNs >= TimeUnit.MILLISECONDS.toNanos(settings.flushMs())) {
      flush();
      flushedNs = nowNs;
    }
  }

  private void count(Tuple view) {
    String campaign = view.getStringByField(JoinCampaign.CAMPAIGN);
    if (campaign != null) {
      batch.countView(campaign, view.getLongByField(Deserialize.TIME));
    }
    batch.countDone((Done) view.getValueByField(Deserialize.DONE));
    if (settings.tracksTuples()) {
      counted.add(view);
    }
  }

  private void flush() {
    sink.flush(batch);
    counted.forEach(collector::ack);
    counted.clear();
  }

  @Override
  public void declareOutputFields(OutputFieldsDeclarer declarer) {}

  /** Configures ticks, at which the remaining counts are written even if no more tuples arrive. */
  @Override
  public Map<String, Object> getComponentConfiguration() {
    return Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1);
  }

  @Override
  public void cleanup() {
    sink.close();
  }
}
