"""Kafka Streams' image, where none can be pulled."""

from racetrack.engines.shared.java_program import FILES
from racetrack.install.image import Image

IMAGES = (Image("kstreams", parts=("kstreams",), runs=("kstreams",), files=FILES),)
