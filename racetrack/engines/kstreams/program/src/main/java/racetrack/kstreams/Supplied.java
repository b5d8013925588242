package racetrack.kstreams;

import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** Makes the processors of tasks, and names the stores that they use. */
record Supplied<K, V, L, W>(Supplier<Processor<K, V, L, W>> made, Set<StoreBuilder<?>> stores)
    implements ProcessorSupplier<K, V, L, W> {
  @Override
  public Processor<K, V, L, W> get() {
    return made.get();
  }
}
