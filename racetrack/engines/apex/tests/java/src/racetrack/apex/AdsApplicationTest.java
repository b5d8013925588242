package racetrack.apex;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datatorrent.api.Context.DAGContext;
import com.datatorrent.api.Context.OperatorContext;
import com.datatorrent.api.Context.PortContext;
import com.datatorrent.api.Operator.ProcessingMode;
import com.datatorrent.stram.plan.logical.LogicalPlan;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;

/** What the settings change in Apex. */
class AdsApplicationTest {
  private static LogicalPlan plan(int windowMs) {
    LogicalPlan plan = new LogicalPlan();
    new AdsApplication(
            new Settings(
                "", "", 1, ProcessingMode.AT_LEAST_ONCE, windowMs, 100, 60, "thread_local", ""))
        .populateDAG(plan, new Configuration(false));
    return plan;
  }

  private static List<Integer> timeouts(LogicalPlan plan) {
    return plan.getAllOperators().stream()
        .map(operator -> operator.getValue(OperatorContext.TIMEOUT_WINDOW_COUNT))
        .distinct()
        .toList();
  }

  @Test
  void everyInputPortHasTheQueueOfThePublishedApplication() {
    List<Integer> capacities =
        plan(500).getAllStreams().stream()
            .flatMap(stream -> stream.getSinks().stream())
            .map(port -> port.getValue(PortContext.QUEUE_CAPACITY))
            .toList();
    assertEquals(List.of(65_536, 65_536, 65_536, 65_536, 65_536), capacities);
  }

  @Test
  void aShorterWindowLeavesAnOperatorAsMuchTime() {
    assertEquals(100, plan(100).getValue(DAGContext.STREAMING_WINDOW_SIZE_MILLIS));
    assertEquals(List.of(600), timeouts(plan(100)));
    assertEquals(List.of(120), timeouts(plan(500)));
    assertEquals(List.of(120), timeouts(plan(2_000)));
  }
}
