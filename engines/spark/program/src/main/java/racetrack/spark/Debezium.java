package racetrack.spark;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.Serializable;
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
 * Functions for SQL that read what Debezium writes in Avro as Confluent frames it (a zero, the four
 * bytes of a schema's id, the record) and give it as JSON, decimals with all their digits.
 *
 * <p>Spark's own reader of Avro knows no registry: it would have to be told each schema.
 */
final class Debezium implements Serializable {
  private static final long serialVersionUID = 1;
  private static final int HEAD_BYTES = 1 + Integer.BYTES;
  private static final Duration ANSWER_WITHIN = Duration.ofSeconds(30);
  private static final ObjectMapper JSON =
      JsonMapper.builder().enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN).build();
  private static final GenericData DATA = new GenericData();

  static {
    DATA.addLogicalTypeConversion(new Conversions.DecimalConversion());
  }

  /** One for each JVM, however often Spark copies the functions. */
  private static final Map<String, GenericDatumReader<GenericRecord>> READERS =
      new ConcurrentHashMap<>();

  private final String registry;

  /** `registry` is the URL of Confluent's API. */
  Debezium(String registry) {
    this.registry = registry;
  }

  /** The key of a table: its only column. */
  String key(byte[] message) throws IOException {
    GenericRecord key = decode(message);
    if (key.getSchema().getFields().size() != 1) {
      throw new IOException("a key of more than one column: " + key);
    }
    return JSON.writeValueAsString(plain(key.get(0)));
  }

  /** The row as it is after a change, its columns in their order; null if it is gone. */
  String row(byte[] message) throws IOException {
    return json((GenericRecord) decode(message).get("after"));
  }

  /** The row as it was before a change; null if there was none. */
  String rowBefore(byte[] message) throws IOException {
    return json((GenericRecord) decode(message).get("before"));
  }

  private static String json(GenericRecord row) throws IOException {
    if (row == null) {
      return null;
    }
    Map<String, Object> columns = new LinkedHashMap<>();
    for (Schema.Field field : row.getSchema().getFields()) {
      columns.put(field.name(), plain(row.get(field.pos())));
    }
    return JSON.writeValueAsString(columns);
  }

  private GenericRecord decode(byte[] message) throws IOException {
    ByteBuffer head = ByteBuffer.wrap(message);
    if (message.length < HEAD_BYTES || head.get() != 0) {
      throw new IOException("a message that is not framed Avro");
    }
    String uri = registry + "/schemas/ids/" + head.getInt();
    GenericDatumReader<GenericRecord> reader = READERS.get(uri);
    if (reader == null) {
      reader = readerOf(uri);
      READERS.put(uri, reader);
    }
    int length = message.length - HEAD_BYTES;
    return reader.read(
        null, DecoderFactory.get().binaryDecoder(message, HEAD_BYTES, length, null));
  }

  private static GenericDatumReader<GenericRecord> readerOf(String uri) throws IOException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(uri)).timeout(ANSWER_WITHIN).build();
    try {
      var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
      if (answer.statusCode() != 200) {
        throw new IOException(uri + ": HTTP " + answer.statusCode() + ": " + answer.body());
      }
      String schema = JSON.readTree(answer.body()).required("schema").asText();
      Schema parsed = new Schema.Parser().parse(schema);
      return new GenericDatumReader<>(parsed, parsed, DATA);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while asking " + uri, error);
    }
  }

  /** Avro has a text type of its own. */
  private static Object plain(Object value) {
    return value instanceof CharSequence ? value.toString() : value;
  }
}
