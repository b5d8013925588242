"""Apache Flink, used through its SQL gateway."""
