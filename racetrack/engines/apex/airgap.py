"""Apex' image, where none can be pulled."""

from racetrack.engines.shared.java_program import FILES
from racetrack.install.image import Image

IMAGES = (Image("apex", parts=("apex",), runs=("apex",), files=FILES),)
