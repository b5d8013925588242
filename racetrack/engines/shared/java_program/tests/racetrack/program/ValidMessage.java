package racetrack.program;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;

/** An unusual message that all engines read alike (tests/json_messages.py), and what it says. */
public record ValidMessage(byte[] pageview, byte[] event, String text, long dueMs, long userId) {
  public static List<ValidMessage> all() throws IOException {
    return Files.readAllLines(Path.of(System.getenv("JSON_MESSAGES"))).stream()
        .map(line -> of(line.split(" ", -1)))
        .toList();
  }

  private static ValidMessage of(String[] row) {
    String text = new String(decoded(row[2]), StandardCharsets.UTF_8);
    return new ValidMessage(
        decoded(row[0]), decoded(row[1]), text, Long.parseLong(row[3]), Long.parseLong(row[4]));
  }

  private static byte[] decoded(String text) {
    return Base64.getDecoder().decode(text);
  }
}
