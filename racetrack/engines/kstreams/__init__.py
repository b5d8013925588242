"""Kafka Streams, in a program written for this project."""
