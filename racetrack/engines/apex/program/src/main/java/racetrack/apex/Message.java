package racetrack.apex;

/** A message from Kafka. */
record Message(int partition, long offset, byte[] value) {}
