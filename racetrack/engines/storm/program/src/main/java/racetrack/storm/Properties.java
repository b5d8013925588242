package racetrack.storm;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.shade.net.minidev.json.parser.ParseException;
import org.apache.storm.validation.ConfigValidation;

/** The properties in STORM_PROPERTIES, with the types that Storm expects. */
final class Properties {
  private Properties() {}

  /** Ends the program if Storm has no such property, or refuses its value. */
  static Map<String, Object> typed(Map<String, String> properties) {
    Map<String, Object> typed = new HashMap<>();
    properties.forEach((name, text) -> typed.put(name, value(text)));
    for (String name : properties.keySet()) {
      try {
        ConfigValidation.validateField(constant(name), typed);
      } catch (IllegalArgumentException error) {
        throw new IllegalArgumentException("STORM_PROPERTIES: " + name + ": " + error.getMessage());
      }
    }
    return typed;
  }

  /** A value as `storm jar -c` reads it: JSON, or else text. */
  private static Object value(String text) {
    try {
      return JSONValue.parseWithException(text);
    } catch (ParseException error) {
      return text;
    }
  }

  /** The constant of a property, with its annotations; Storm would ignore a name without one. */
  private static Field constant(String name) {
    for (Field field : Config.class.getFields()) {
      try {
        if (ConfigValidation.isFieldAllowed(field) && field.get(null).equals(name)) {
          return field;
        }
      } catch (IllegalAccessException error) {
        throw new IllegalStateException(error); // all of these fields are public
      }
    }
    throw new IllegalArgumentException("Storm has no such property.");
  }
}
