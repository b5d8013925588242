"""Flink's image, where none can be pulled."""

from racetrack.install.image import Image

IMAGES = (
    Image(
        "flink",
        parts=("flink",),
        prepare=("flink",),
        runs=("flink",),
        files=("racetrack/engines/flink/log4j2.properties",),
    ),
)
