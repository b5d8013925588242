package racetrack.kstreams;

import java.nio.ByteBuffer;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import racetrack.kstreams.Nexmark.Event;

/**
 * A row of a window, and its event time; or a watermark: `input` has no more rows before `atMs`.
 *
 * <p>A window of Kafka Streams (`windowedBy`) closes by the newest time of all rows that its task
 * has received, from whichever partition they came. Rows of a partition that is behind would then
 * be dropped as late. So the task that reads a partition sends watermarks to all tasks of the next
 * stage, through the same topic as the rows, which keeps their order. A window closes when the
 * watermarks of all inputs have passed its end; see `WindowProcessor`.
 */
record Timed<V>(int input, long atMs, V row) {
  private static final int NO_INPUT = -1;
  private static final int HEAD_BYTES = Integer.BYTES + Long.BYTES;

  static <V> Timed<V> row(long atMs, V row) {
    return new Timed<>(NO_INPUT, atMs, row);
  }

  static <V> Timed<V> watermark(int input, long atMs) {
    return new Timed<>(input, atMs, null);
  }

  boolean isWatermark() {
    return input != NO_INPUT;
  }

  static <V> Serde<Timed<V>> serde(Serde<V> rows) {
    return Serdes.serdeFrom(
        (topic, timed) -> {
          byte[] row =
              timed.isWatermark() ? new byte[0] : rows.serializer().serialize(topic, timed.row);
          ByteBuffer buffer = ByteBuffer.allocate(HEAD_BYTES + row.length);
          return buffer.putInt(timed.input).putLong(timed.atMs).put(row).array();
        },
        (topic, data) -> {
          ByteBuffer buffer = ByteBuffer.wrap(data);
          int input = buffer.getInt();
          long atMs = buffer.getLong();
          if (input != NO_INPUT) {
            return watermark(input, atMs);
          }
          byte[] row = new byte[buffer.remaining()];
          buffer.get(row);
          return row(atMs, rows.deserializer().deserialize(topic, row));
        });
  }

  /**
   * Sends the rows of a partition's events and, when its time has passed the end of a window and
   * the delay, a watermark.
   */
  static final class Send<V> extends ContextualProcessor<Integer, Event, Long, Timed<V>> {
    private static final Long NO_KEY = 0L;

    private final Function<Event, KeyValue<Long, V>> rowOf;
    private final long everyMs;
    private final long delayMs;
    private long passedMs;

    Send(Function<Event, KeyValue<Long, V>> rowOf, long everyMs, long delayMs) {
      this.rowOf = rowOf;
      this.everyMs = everyMs;
      this.delayMs = delayMs;
    }

    @Override
    public void process(Record<Integer, Event> record) {
      Event event = record.value();
      KeyValue<Long, V> row = rowOf.apply(event);
      if (row != null) {
        forward(row.key, row(event.dateTime(), row.value), record.timestamp());
      }
      long atMs = event.dateTime() - delayMs;
      long passed = atMs - atMs % everyMs;
      if (passed > passedMs) {
        passedMs = passed;
        int partition = context().taskId().partition();
        forward(NO_KEY, watermark(partition, passed), record.timestamp());
      }
    }

    private void forward(Long key, Timed<V> timed, long timestamp) {
      context().forward(new Record<>(key, timed, timestamp));
    }
  }
}
