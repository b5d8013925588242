"""Apex's image, where none can be pulled."""

from racetrack.install.image import Image

IMAGES = (Image("apex", parts=("apex",), runs=("apex",)),)
