"""Racetrack's load generator: sends a workload's events to Kafka and its changes to MySQL, as an
open loop."""
