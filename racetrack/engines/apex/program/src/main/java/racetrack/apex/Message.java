package racetrack.apex;

/** What was read of Kafka. */
record Message(int partition, long offset, byte[] value) {}
