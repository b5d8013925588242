package racetrack.program;

import java.util.LinkedHashMap;
import java.util.Map;

/** Reads settings from environment variables. A missing setting ends the program. */
public record Environment(Map<String, String> variables) {
  public String text(String name) {
    String value = variables.get(name);
    if (value == null || value.isEmpty()) {
      throw new IllegalArgumentException(name + " is not set.");
    }
    return value;
  }

  public String text(String name, String otherwise) {
    String value = variables.get(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  public int number(String name) {
    try {
      return Integer.parseInt(text(name));
    } catch (NumberFormatException error) {
      throw new IllegalArgumentException(name + "=" + text(name) + " is not a number.");
    }
  }

  /** Properties: words such as `name=value`, quoted as for a shell. There may be none. */
  public Map<String, String> properties(String name) {
    Map<String, String> properties = new LinkedHashMap<>();
    for (String word : ShellWords.of(text(name, ""))) {
      String[] sides = word.split("=", 2);
      if (sides.length == 1) {
        throw new IllegalArgumentException(name + ": " + word + " is not of the form name=value.");
      }
      properties.put(sides[0], sides[1]);
    }
    return properties;
  }
}
