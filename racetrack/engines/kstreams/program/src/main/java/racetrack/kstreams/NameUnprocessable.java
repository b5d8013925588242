package racetrack.kstreams;

import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.errors.LogAndFailProcessingExceptionHandler;
import org.apache.kafka.streams.processor.api.Record;
import racetrack.program.Refused;

/** Ends the program at a message that can't be processed, and prints which one it is. */
public final class NameUnprocessable extends LogAndFailProcessingExceptionHandler {
  @Override
  public Response handleError(ErrorHandlerContext context, Record<?, ?> record, Exception error) {
    new Refused(context.topic(), context.partition(), context.offset(), error).print();
    return super.handleError(context, record, error);
  }
}
