"""Feeder: the program that copies messages from Kafka into PostgreSQL, in its own process or
container."""
