package racetrack.program;

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
    return Integer.parseInt(text(name));
  }
}
