package racetrack.kstreams;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * Reads what Debezium writes in Avro as Confluent frames it: a zero, the four bytes of a schema's
 * id, the record. Confluent's own reader is not on Maven Central. Decimals are exact.
 */
final class Debezium {
  private static final int HEAD_BYTES = 1 + Integer.BYTES;
  private static final Duration ANSWER_WITHIN = Duration.ofSeconds(30);

  private final String registry;
  private final HttpClient http = HttpClient.newHttpClient();
  private final GenericData data = new GenericData();
  private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new ConcurrentHashMap<>();

  /** `registry` is the URL of Confluent's API. */
  Debezium(String registry) {
    this.registry = registry;
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
  }

  /** The key of a table: its only column. */
  <K> Serde<K> key(Function<Object, K> as) {
    return readOnly(
        (topic, message) -> {
          GenericRecord record = decode(topic, message);
          if (record.getSchema().getFields().size() != 1) {
            throw new SerializationException(topic + " has a key of more than one column");
          }
          return as.apply(plain(record.get(0)));
        });
  }

  /** The row as it is after a change; null if it is gone. */
  <V> Serde<V> row(Class<V> type) {
    return readOnly(
        (topic, message) -> {
          GenericRecord after =
              message == null ? null : (GenericRecord) decode(topic, message).get("after");
          return after == null ? null : Json.MAPPER.convertValue(columns(after), type);
        });
  }

  private static <T> Serde<T> readOnly(Deserializer<T> deserializer) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          throw new UnsupportedOperationException(topic + " is Debezium's");
        },
        deserializer);
  }

  private GenericRecord decode(String topic, byte[] message) {
    ByteBuffer head = ByteBuffer.wrap(message);
    if (message.length < HEAD_BYTES || head.get() != 0) {
      throw new SerializationException("a message of " + topic + " is not framed Avro");
    }
    GenericDatumReader<GenericRecord> reader =
        readers.computeIfAbsent(head.getInt(), this::readerOf);
    try {
      int length = message.length - HEAD_BYTES;
      return reader.read(
          null, DecoderFactory.get().binaryDecoder(message, HEAD_BYTES, length, null));
    } catch (IOException error) {
      throw new SerializationException("a message of " + topic + " can't be read", error);
    }
  }

  private GenericDatumReader<GenericRecord> readerOf(int id) {
    URI uri = URI.create(registry + "/schemas/ids/" + id);
    try {
      HttpRequest request = HttpRequest.newBuilder(uri).timeout(ANSWER_WITHIN).build();
      var answer = http.send(request, BodyHandlers.ofString());
      if (answer.statusCode() != 200) {
        throw new SerializationException(
            uri + ": HTTP " + answer.statusCode() + ": " + answer.body());
      }
      String schema = Json.MAPPER.readTree(answer.body()).required("schema").asText();
      Schema parsed = new Schema.Parser().parse(schema);
      return new GenericDatumReader<>(parsed, parsed, data);
    } catch (IOException error) {
      throw new SerializationException("the registry does not answer at " + uri, error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new SerializationException("interrupted while asking " + uri, error);
    }
  }

  private static Map<String, Object> columns(GenericRecord row) {
    Map<String, Object> found = new HashMap<>();
    for (Schema.Field field : row.getSchema().getFields()) {
      found.put(field.name(), plain(row.get(field.pos())));
    }
    return found;
  }

  /** Avro has a text type of its own. */
  private static Object plain(Object value) {
    return value instanceof CharSequence ? value.toString() : value;
  }
}
