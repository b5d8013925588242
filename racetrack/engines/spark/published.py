"""The published image that Spark' is made from."""

from racetrack.engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
