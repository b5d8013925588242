package racetrack.kstreams;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.errors.LogAndFailExceptionHandler;
import racetrack.program.Refused;

/** Ends the program at a message that can't be decoded, and prints which one it is. */
public final class NameUndecodable extends LogAndFailExceptionHandler {
  @Override
  public Response handleError(
      ErrorHandlerContext context, ConsumerRecord<byte[], byte[]> record, Exception error) {
    new Refused(record.topic(), record.partition(), record.offset(), error).print();
    return super.handleError(context, record, error);
  }
}
