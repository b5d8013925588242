"""Apache Flink, through its SQL gateway."""
