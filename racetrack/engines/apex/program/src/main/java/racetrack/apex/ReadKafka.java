package racetrack.apex;

import com.datatorrent.api.Context.OperatorContext;
import com.datatorrent.api.DefaultOutputPort;
import com.datatorrent.api.InputOperator;
import com.datatorrent.api.Operator.CheckpointNotificationListener;
import com.datatorrent.api.Operator.ProcessingMode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import racetrack.redis.AdEvent;

/**
 * Reads the topic with a current Kafka client: the client in Apex' own operators is so old that
 * today's brokers reject it.
 *
 * <p>With at_least_once, offsets are committed to Kafka when a checkpoint is complete in all
 * operators, as Apex' own operators do; a killed application resumes from these offsets. With
 * at_most_once, offsets are committed before the messages are emitted.
 */
public class ReadKafka implements InputOperator, CheckpointNotificationListener {
  private static final String GROUP = "apex";

  /** Wait in `poll` if there are no messages: otherwise Apex would put this operator to sleep. */
  private static final Duration WAITS_FOR_MORE = Duration.ofMillis(10);

  public final transient DefaultOutputPort<Message> output = new DefaultOutputPort<>();

  private String kafka;
  private boolean atMostOnce;

  /** Partition → offset of the next message to read. Checkpoints contain it. */
  private HashMap<Integer, Long> next = new HashMap<>();

  /** Checkpoint → `next` at the time of the checkpoint. */
  private TreeMap<Long, HashMap<Integer, Long>> atCheckpoint = new TreeMap<>();

  private transient Consumer<byte[], byte[]> consumer;

  /** For Kryo, which creates operators from a checkpoint. */
  public ReadKafka() {}

  ReadKafka(String kafka, ProcessingMode guarantee) {
    this.kafka = kafka;
    atMostOnce = guarantee == ProcessingMode.AT_MOST_ONCE;
  }

  @Override
  public void setup(OperatorContext context) {
    consumer = connect();
    List<TopicPartition> partitions =
        consumer.partitionsFor(AdEvent.TOPIC).stream()
            .map(info -> new TopicPartition(info.topic(), info.partition()))
            .toList();
    consumer.assign(partitions);
    if (!atMostOnce) {
      next.forEach((partition, offset) -> consumer.seek(of(partition), offset));
    }
  }

  Consumer<byte[], byte[]> connect() {
    return new KafkaConsumer<>(
        Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, kafka,
            ConsumerConfig.GROUP_ID_CONFIG, GROUP,
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest"),
        new ByteArrayDeserializer(),
        new ByteArrayDeserializer());
  }

  @Override
  public void emitTuples() {
    ConsumerRecords<byte[], byte[]> records = consumer.poll(WAITS_FOR_MORE);
    for (ConsumerRecord<byte[], byte[]> record : records) {
      next.put(record.partition(), record.offset() + 1);
    }
    if (atMostOnce && !records.isEmpty()) {
      commit(next);
    }
    for (ConsumerRecord<byte[], byte[]> record : records) {
      output.emit(new Message(record.partition(), record.offset(), record.value()));
    }
  }

  @Override
  public void beforeCheckpoint(long windowId) {
    atCheckpoint.put(windowId, new HashMap<>(next));
  }

  @Override
  public void committed(long windowId) {
    Map<Long, HashMap<Integer, Long>> complete = atCheckpoint.headMap(windowId, true);
    if (!atMostOnce && !complete.isEmpty()) {
      commit(atCheckpoint.floorEntry(windowId).getValue());
    }
    complete.clear();
  }

  private void commit(Map<Integer, Long> offsets) {
    Map<TopicPartition, OffsetAndMetadata> byPartition = new HashMap<>();
    offsets.forEach((p, offset) -> byPartition.put(of(p), new OffsetAndMetadata(offset)));
    consumer.commitSync(byPartition);
  }

  private static TopicPartition of(int partition) {
    return new TopicPartition(AdEvent.TOPIC, partition);
  }

  @Override
  public void checkpointed(long windowId) {}

  @Override
  public void beginWindow(long windowId) {}

  @Override
  public void endWindow() {}

  @Override
  public void teardown() {
    consumer.close();
  }
}
