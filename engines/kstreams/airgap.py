"""Kafka Streams' image, where none can be pulled."""

from racetrack.install.image import Image

IMAGES = (Image("kstreams", parts=("kstreams",), runs=("kstreams",)),)
