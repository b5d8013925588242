package racetrack.kstreams;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Rows as JSON: the fields have the columns' names and order, and decimals have all their digits.
 */
final class Json {
  /**
   * Reports an error if a column is missing, or is null but must not be. Additional columns are
   * ignored.
   */
  static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN)
          .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .build();

  private Json() {}

  static <T> Serde<T> of(Class<T> type) {
    ObjectReader reader = MAPPER.readerFor(type);
    return Serdes.serdeFrom(Json::write, (topic, data) -> read(reader, topic, data));
  }

  /** Serde for rows that are only written, never read. */
  static <T> Serde<T> written() {
    Serializer<T> serializer = Json::write;
    return Serdes.serdeFrom(
        serializer,
        (topic, data) -> {
          throw new UnsupportedOperationException(topic + " is not read");
        });
  }

  private static <T> byte[] write(String topic, T value) {
    try {
      return value == null ? null : MAPPER.writeValueAsBytes(value);
    } catch (JsonProcessingException error) {
      throw new SerializationException("writing to " + topic, error);
    }
  }

  private static <T> T read(ObjectReader reader, String topic, byte[] data) {
    try {
      return data == null ? null : reader.readValue(data);
    } catch (IOException error) {
      throw new SerializationException("a message of " + topic + " can't be read", error);
    }
  }
}
