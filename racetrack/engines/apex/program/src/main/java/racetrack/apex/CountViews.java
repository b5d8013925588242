package racetrack.apex;

import com.datatorrent.api.Context.DAGContext;
import com.datatorrent.api.Context.OperatorContext;
import com.datatorrent.api.DefaultInputPort;
import com.datatorrent.api.Operator.CheckpointNotificationListener;
import com.datatorrent.common.util.BaseOperator;
import racetrack.redis.Batch;
import racetrack.redis.RedisSink;

/**
 * Counts views by campaign and window. Writes the counts to Redis at the end of a streaming window
 * if the last write was at least `flushMs` ago. Also writes before each checkpoint, so that all
 * counts that a complete checkpoint covers are in Redis.
 */
public final class CountViews extends BaseOperator implements CheckpointNotificationListener {
  public final transient DefaultInputPort<View> input =
      new DefaultInputPort<>() {
        @Override
        public void process(View view) {
          if (view.campaign() != null) {
            batch.countView(view.campaign(), view.timeMs());
          }
          batch.countDone(view.done());
        }
      };

  private String redisHost;
  private int redisPort;
  private int flushMs;

  /** Transient, because it is empty whenever a checkpoint is made. */
  private final transient Batch batch = new Batch();

  private transient RedisSink sink;
  private transient int windowMs;
  private transient int sinceFlushMs;

  /** For Kryo, which creates operators from a checkpoint. */
  public CountViews() {}

  CountViews(String redisHost, int redisPort, int flushMs) {
    this.redisHost = redisHost;
    this.redisPort = redisPort;
    this.flushMs = flushMs;
  }

  @Override
  public void setup(OperatorContext context) {
    sink = new RedisSink(redisHost, redisPort);
    windowMs = context.getValue(DAGContext.STREAMING_WINDOW_SIZE_MILLIS);
  }

  @Override
  public void endWindow() {
    sinceFlushMs += windowMs;
    if (sinceFlushMs >= flushMs) {
      flush();
    }
  }

  @Override
  public void beforeCheckpoint(long windowId) {
    flush();
  }

  private void flush() {
    sink.flush(batch);
    sinceFlushMs = 0;
  }

  @Override
  public void checkpointed(long windowId) {}

  @Override
  public void committed(long windowId) {}

  @Override
  public void teardown() {
    sink.close();
  }
}
