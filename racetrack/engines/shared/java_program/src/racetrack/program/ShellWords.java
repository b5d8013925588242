package racetrack.program;

import java.util.ArrayList;
import java.util.List;

/** Splits a text into words as a shell does, with both kinds of quotes and backslashes. */
final class ShellWords {
  private final String text;
  private int at;

  private ShellWords(String text) {
    this.text = text;
  }

  static List<String> of(String text) {
    ShellWords rest = new ShellWords(text);
    List<String> words = new ArrayList<>();
    while (rest.skipBlanks()) {
      words.add(rest.word());
    }
    return words;
  }

  /** Returns whether anything is left. */
  private boolean skipBlanks() {
    while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
      at++;
    }
    return at < text.length();
  }

  private String word() {
    StringBuilder word = new StringBuilder();
    while (at < text.length() && !Character.isWhitespace(text.charAt(at))) {
      char first = next();
      if (first == '\'' || first == '"') {
        quoted(first, word);
      } else {
        word.append(first == '\\' ? next() : first);
      }
    }
    return word.toString();
  }

  /** Appends the text up to the closing quote. */
  private void quoted(char quote, StringBuilder word) {
    for (char one = next(); one != quote; one = next()) {
      boolean isBackslash = one == '\\' && quote == '"' && at < text.length();
      boolean escapes = isBackslash && "\"\\".indexOf(text.charAt(at)) >= 0;
      word.append(escapes ? next() : one);
    }
  }

  private char next() {
    if (at == text.length()) {
      throw new IllegalArgumentException("A quote is not closed, or a backslash ends the text: " + text);
    }
    return text.charAt(at++);
  }
}
