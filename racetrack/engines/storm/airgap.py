"""Storm's image, where none can be pulled."""

from racetrack.engines.shared.java_program import FILES
from racetrack.install.image import Image

IMAGES = (Image("storm", parts=("storm",), runs=("storm",), files=FILES),)
