"""The published image that Storm runs on."""

from engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
