"""The published image that Apex runs on."""

from engines.shared.temurin import TEMURIN

IMAGES = (TEMURIN,)
