"""Racetrack's load generator: a workload's events into Kafka and its changes into MySQL, as an open
loop.
"""
