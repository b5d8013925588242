"""Storm's image, where none can be pulled."""

from racetrack.install.image import Image

IMAGES = (Image("storm", parts=("storm",), runs=("storm",)),)
