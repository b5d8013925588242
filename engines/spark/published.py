"""The published image that Spark' is made from."""

from engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
