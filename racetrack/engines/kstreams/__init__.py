"""Kafka Streams, as a program of its own."""
