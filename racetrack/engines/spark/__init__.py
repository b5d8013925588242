"""Apache Spark Structured Streaming, as a program of its own."""
