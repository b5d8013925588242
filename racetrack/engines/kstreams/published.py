"""The published image that Kafka Streams runs on."""

from racetrack.engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
