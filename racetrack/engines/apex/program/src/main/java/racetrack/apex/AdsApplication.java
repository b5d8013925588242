package racetrack.apex;

import com.datatorrent.api.Context.DAGContext;
import com.datatorrent.api.Context.OperatorContext;
import com.datatorrent.api.Context.PortContext;
import com.datatorrent.api.DAG;
import com.datatorrent.api.DAG.Locality;
import com.datatorrent.api.Operator;
import com.datatorrent.api.Operator.InputPort;
import com.datatorrent.api.StreamingApplication;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * Yahoo's streaming benchmark on Apex, with the stages of the published implementations. It counts
 * how often ads were viewed, by campaign and window of ten seconds, and writes the counts to Redis.
 */
final class AdsApplication implements StreamingApplication {
  /** As in Yahoo's published application; Apex' default is 1,024. */
  private static final int QUEUE_CAPACITY = 65_536;

  private static final int TIMEOUT_MS = 60_000;

  private final Settings settings;

  AdsApplication(Settings settings) {
    this.settings = settings;
  }

  @Override
  public void populateDAG(DAG dag, Configuration configuration) {
    dag.setAttribute(DAGContext.APPLICATION_NAME, "ads");
    dag.setAttribute(DAGContext.APPLICATION_PATH, Path.of("apex").toAbsolutePath().toString());
    dag.setAttribute(DAGContext.STREAMING_WINDOW_SIZE_MILLIS, settings.windowMs());
    dag.setAttribute(DAGContext.CHECKPOINT_WINDOW_COUNT, settings.checkpointWindows());

    ReadKafka ads =
        dag.addOperator("ads", new ReadKafka(settings.kafka(), settings.guarantee()));
    Deserialize deserialize = dag.addOperator("deserialize", new Deserialize());
    KeepViews filter = dag.addOperator("filter", new KeepViews());
    Project project = dag.addOperator("project", new Project());
    JoinCampaign join =
        dag.addOperator("join", new JoinCampaign(settings.redisHost(), settings.redisPort()));
    CountViews count =
        dag.addOperator(
            "count",
            new CountViews(settings.redisHost(), settings.redisPort(), settings.flushMs()));

    for (Operator operator : List.of(ads, deserialize, filter, project, join, count)) {
      dag.setOperatorAttribute(operator, OperatorContext.PROCESSING_MODE, settings.guarantee());
      dag.setOperatorAttribute(operator, OperatorContext.TIMEOUT_WINDOW_COUNT, timeoutWindows());
    }
    for (InputPort<?> port :
        List.of(deserialize.input, filter.input, project.input, join.input, count.input)) {
      dag.setInputPortAttribute(port, PortContext.QUEUE_CAPACITY, QUEUE_CAPACITY);
    }

    Locality locality = Locality.valueOf(settings.locality().toUpperCase());
    dag.addStream("messages", ads.output, deserialize.input).setLocality(locality);
    dag.addStream("events", deserialize.output, filter.input).setLocality(locality);
    dag.addStream("views", filter.output, project.input).setLocality(locality);
    dag.addStream("projected", project.output, join.input).setLocality(locality);
    dag.addStream("joined", join.output, count.input).setLocality(locality);
  }

  /**
   * After how many windows without progress Apex restarts the operators: its default, but never
   * less than a minute. With short windows, a wait for Redis would otherwise cause a restart.
   */
  private int timeoutWindows() {
    int least = OperatorContext.TIMEOUT_WINDOW_COUNT.defaultValue;
    return Math.max(least, TIMEOUT_MS / settings.windowMs());
  }
}
