"""The published image that Apex runs on."""

from racetrack.engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
