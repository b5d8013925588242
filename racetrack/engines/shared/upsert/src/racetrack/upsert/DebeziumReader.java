package racetrack.upsert;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;

/**
 * Reads Debezium's messages: Avro in Confluent's framing, which is a zero byte, the schema id (four
 * bytes) and the record. Decimals are exact. Confluent's own reader is not used, because it is not
 * on Maven Central.
 */
public final class DebeziumReader {
  private static final int HEAD_BYTES = 1 + Integer.BYTES;
  private static final Duration ANSWER_WITHIN = Duration.ofSeconds(30);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final String registry;
  private final HttpClient http = HttpClient.newHttpClient();
  private final GenericData data = new GenericData();
  private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new ConcurrentHashMap<>();

  /** `registry` is the URL of Confluent's API. */
  public DebeziumReader(String registry) {
    this.registry = registry;
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
  }

  /** Returns the key of a row: the value of the table's only key column. */
  public Object key(byte[] message) throws IOException {
    GenericRecord key = decode(message);
    if (key.getSchema().getFields().size() != 1) {
      throw new IOException("a key of more than one column: " + key);
    }
    return plain(key.get(0));
  }

  /** Returns the row after a change, with its columns in order; null if it was deleted. */
  public Map<String, Object> after(byte[] message) throws IOException {
    return columns((GenericRecord) decode(message).get("after"));
  }

  /** Returns the row before a change; null if there was none. */
  public Map<String, Object> before(byte[] message) throws IOException {
    return columns((GenericRecord) decode(message).get("before"));
  }

  private GenericRecord decode(byte[] message) throws IOException {
    ByteBuffer head = ByteBuffer.wrap(message);
    if (message.length < HEAD_BYTES || head.get() != 0) {
      throw new IOException("a message that is not framed Avro");
    }
    int id = head.getInt();
    GenericDatumReader<GenericRecord> reader = readers.get(id);
    if (reader == null) {
      reader = readerOf(id);
      readers.put(id, reader);
    }
    int length = message.length - HEAD_BYTES;
    return reader.read(
        null, DecoderFactory.get().binaryDecoder(message, HEAD_BYTES, length, null));
  }

  private GenericDatumReader<GenericRecord> readerOf(int id) throws IOException {
    URI uri = URI.create(registry + "/schemas/ids/" + id);
    HttpRequest request = HttpRequest.newBuilder(uri).timeout(ANSWER_WITHIN).build();
    try {
      var answer = http.send(request, BodyHandlers.ofString());
      if (answer.statusCode() != 200) {
        throw new IOException(uri + ": HTTP " + answer.statusCode() + ": " + answer.body());
      }
      String schema = JSON.readTree(answer.body()).required("schema").asText();
      Schema parsed = new Schema.Parser().parse(schema);
      return new GenericDatumReader<>(parsed, parsed, data);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while asking " + uri, error);
    }
  }

  private static Map<String, Object> columns(GenericRecord row) {
    if (row == null) {
      return null;
    }
    Map<String, Object> found = new LinkedHashMap<>();
    for (Schema.Field field : row.getSchema().getFields()) {
      found.put(field.name(), plain(row.get(field.pos())));
    }
    return found;
  }

  /** Converts Avro's own text type to a Java string. */
  private static Object plain(Object value) {
    return value instanceof CharSequence ? value.toString() : value;
  }
}
