package racetrack.storm;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.storm.Config;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import racetrack.redis.AdEvent;

/**
 * Yahoo's streaming benchmark on Storm, with the stages of the published implementation. It counts
 * how often ads were viewed, by campaign and window of ten seconds, and writes the counts to Redis.
 */
final class AdsTopology {
  static final String NAME = "ads";

  private AdsTopology() {}

  static StormTopology build(Settings settings) {
    int executors = settings.parallelism();
    TopologyBuilder builder = new TopologyBuilder();
    builder.setSpout("ads", new KafkaSpout<>(source(settings)), executors);
    builder.setBolt("event_deserializer", new Deserialize(), executors).shuffleGrouping("ads");
    builder
        .setBolt("event_filter", new KeepViews(), executors)
        .shuffleGrouping("event_deserializer");
    builder.setBolt("event_projection", new Project(), executors).shuffleGrouping("event_filter");
    builder
        .setBolt("redis_join", new JoinCampaign(settings), executors)
        .shuffleGrouping("event_projection");
    builder
        .setBolt("campaign_processor", new CountViews(settings), executors)
        .fieldsGrouping("redis_join", new Fields(JoinCampaign.CAMPAIGN));
    return builder.createTopology();
  }

  /**
   * The spout that reads the topic. It commits its offsets to Kafka, so that a killed topology
   * resumes from them.
   */
  private static KafkaSpoutConfig<byte[], byte[]> source(Settings settings) {
    return new KafkaSpoutConfig.Builder<byte[], byte[]>(settings.kafka(), AdEvent.TOPIC)
        .setProp(ConsumerConfig.GROUP_ID_CONFIG, "storm")
        .setProp(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
        .setProp(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
        .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
        .setProcessingGuarantee(settings.guarantee())
        .setOffsetCommitPeriodMs(settings.commitMs())
        .build();
  }

  /** The configuration where it differs from Storm's defaults. */
  static Config config(Settings settings) {
    Config config = new Config();
    if (!settings.tracksTuples()) {
      config.setNumAckers(0);
    }
    config.putAll(Properties.typed(settings.properties()));
    return config;
  }
}
