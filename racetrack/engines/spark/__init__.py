"""Apache Spark Structured Streaming, in a program written for this project."""
