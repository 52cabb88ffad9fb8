package tickets.common;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Messages as JSON. */
public final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** Reads and writes messages of one type. */
  public static <T> Serde<T> serde(Class<T> type) {
    ObjectReader reader = MAPPER.readerFor(type);
    // For the type that is asked for, and not for that of the value: only so does JSON say which of several it is.
    ObjectWriter writer = MAPPER.writerFor(type);
    return Serdes.serdeFrom((topic, value) -> {
      try {
        return value == null ? null : writer.writeValueAsBytes(value);
      } catch (JsonProcessingException e) {
        throw new SerializationException("a " + type.getSimpleName() + " for " + topic + " cannot be written", e);
      }
    }, (topic, bytes) -> {
      try {
        return bytes == null ? null : reader.readValue(bytes);
      } catch (IOException e) {
        throw new SerializationException("in " + topic + " stands no " + type.getSimpleName(), e);
      }
    });
  }

  /**
   * Reads what a client sent.
   *
   * @throws JsonProcessingException if it is no JSON, or not of this type; the message says where
   */
  public static <T> T read(String text, Class<T> type) throws JsonProcessingException {
    return MAPPER.readValue(text, type);
  }

  /** A value as JSON. */
  public static String write(Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new SerializationException("a " + value.getClass().getSimpleName() + " cannot be written", e);
    }
  }
}
