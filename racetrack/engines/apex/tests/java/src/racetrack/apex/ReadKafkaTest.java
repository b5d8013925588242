package racetrack.apex;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datatorrent.api.Operator.ProcessingMode;
import com.datatorrent.api.Sink;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import racetrack.redis.AdEvent;

/** How it reads, and when offsets are committed, with Kafka's own mock of a consumer. */
class ReadKafkaTest {
  private static final TopicPartition PARTITION = new TopicPartition(AdEvent.TOPIC, 0);

  /** Remembers how long it was to wait. */
  private static final class Kafka extends MockConsumer<byte[], byte[]> {
    private Duration waited;

    Kafka() {
      super("earliest");
    }

    @Override
    public synchronized ConsumerRecords<byte[], byte[]> poll(Duration timeout) {
      waited = timeout;
      return super.poll(timeout);
    }
  }

  private final Kafka kafka = new Kafka();

  private ReadKafka reader(ProcessingMode guarantee) {
    kafka.updatePartitions(
        AdEvent.TOPIC, List.of(new PartitionInfo(AdEvent.TOPIC, 0, null, null, null)));
    kafka.updateBeginningOffsets(Map.of(PARTITION, 0L));
    ReadKafka reader =
        new ReadKafka("", guarantee) {
          @Override
          Consumer<byte[], byte[]> connect() {
            return kafka;
          }
        };
    reader.setup(null);
    return reader;
  }

  private void produce(long... offsets) {
    for (long offset : offsets) {
      kafka.addRecord(new ConsumerRecord<>(AdEvent.TOPIC, 0, offset, null, new byte[0]));
    }
  }

  private OffsetAndMetadata committed() {
    return kafka.committed(Set.of(PARTITION)).get(PARTITION);
  }

  @Test
  void offsetsAreCommittedAsTheyWereAtACompleteCheckpoint() {
    ReadKafka reader = reader(ProcessingMode.AT_LEAST_ONCE);
    Heard<Message> heard = Heard.of(reader.output);
    produce(0, 1);
    reader.emitTuples();
    reader.beforeCheckpoint(60);
    produce(2);
    reader.emitTuples();
    reader.beforeCheckpoint(120);
    assertEquals(3, heard.tuples.size());
    assertNull(committed());
    reader.committed(60);
    assertEquals(2, committed().offset());
    reader.committed(130);
    assertEquals(3, committed().offset());
  }

  /** Apex puts an operator to sleep that brought nothing, for up to 10 ms, whatever comes then. */
  @Test
  void itWaitsForWhatIsOnItsWay() {
    reader(ProcessingMode.AT_LEAST_ONCE).emitTuples();
    assertTrue(kafka.waited.toMillis() > 0);
  }

  @Test
  void atMostOnceTheyAreCommittedBeforeAnythingGoesOn() {
    ReadKafka reader = reader(ProcessingMode.AT_MOST_ONCE);
    produce(0, 1);
    reader.output.setSink(
        new Sink<>() {
          @Override
          public void put(Object tuple) {
            assertEquals(2, committed().offset());
          }

          @Override
          public int getCount(boolean reset) {
            return 0;
          }
        });
    reader.emitTuples();
    assertEquals(2, committed().offset());
  }
}
