"""Spark' image, where none can be pulled."""

from racetrack.install.image import Image

IMAGES = (Image("spark", parts=("spark",), runs=("spark",)),)
