package racetrack.spark;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.spark.sql.Row;
import racetrack.upsert.Cluster;

/**
 * Writes the changed rows of a micro-batch to topics. The rows of the progress views are written
 * when all other rows have been written.
 *
 * <p>Spark's own sink for Kafka does not write rows in an order. A micro-batch changes only few
 * rows, so the driver collects and writes them. Two sinks, one after the other, would take two more
 * Spark jobs.
 */
record Upserts(
    Producer<String, String> producer, Cluster cluster, Collection<String> progress) {

  static Upserts to(Cluster cluster, Collection<String> progress) {
    Map<String, Object> config = new HashMap<>(cluster.client());
    config.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, Kafka.MESSAGE_MAX_BYTES);
    return new Upserts(
        new KafkaProducer<>(config, new StringSerializer(), new StringSerializer()),
        cluster,
        progress);
  }

  /** Writes messages with the columns `topic`, `key` and `value`; returns when all are written. */
  void write(List<Row> messages) throws Exception {
    var tellsProgress =
        messages.stream()
            .collect(
                Collectors.partitioningBy(row -> progress.contains(row.<String>getAs("topic"))));
    send(tellsProgress.get(false));
    send(tellsProgress.get(true));
  }

  private void send(List<Row> messages) throws Exception {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    for (Row each : messages) {
      String topic = cluster.topic(each.getAs("topic"));
      sent.add(producer.send(new ProducerRecord<>(topic, each.getAs("key"), each.getAs("value"))));
    }
    producer.flush();
    for (Future<RecordMetadata> each : sent) {
      each.get();
    }
  }
}
