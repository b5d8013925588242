"""Pathway: a Python program whose views a dataflow in Rust maintains, and which publishes them to
Kafka."""
