"""Racetrack's load generator, an open loop: sends a workload's events to Kafka and writes its
database changes to MySQL."""
