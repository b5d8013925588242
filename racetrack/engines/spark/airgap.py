"""Spark' image, where none can be pulled."""

from racetrack.engines.shared.java_program import FILES
from racetrack.install.image import Image

IMAGES = (Image("spark", parts=("spark",), runs=("spark",), files=FILES),)
