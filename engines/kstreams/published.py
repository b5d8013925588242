"""The published image that Kafka Streams runs on."""

from engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
