package racetrack.apex;

import com.datatorrent.api.Operator.ProcessingMode;
import java.util.Map;
import racetrack.program.Environment;

/** Settings from the environment; the `.env` of this engine describes them. */
record Settings(
    String kafka,
    String redisHost,
    int redisPort,
    ProcessingMode guarantee,
    int windowMs,
    int flushMs,
    int checkpointWindows,
    String locality,
    String readyFile) {

  static Settings from(Map<String, String> variables) {
    Environment env = new Environment(variables);
    return new Settings(
        env.text("KAFKA_BOOTSTRAP"),
        env.text("REDIS_HOST"),
        env.number("REDIS_PORT"),
        ProcessingMode.valueOf(env.text("APEX_GUARANTEE").toUpperCase()),
        env.number("APEX_WINDOW_MS"),
        env.number("APEX_FLUSH_MS"),
        env.number("APEX_CHECKPOINT_WINDOWS"),
        env.text("APEX_LOCALITY"),
        env.text("READY_FILE"));
  }
}
