"""The published image that Storm runs on."""

from racetrack.engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
