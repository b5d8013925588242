"""Racetrack's load generator: an online shop's pageviews into Kafka and its purchases into MySQL,
as an open loop.
"""
