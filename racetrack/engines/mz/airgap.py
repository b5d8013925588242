"""The image of Materialize's client, where none can be pulled. There is none of its server."""

from pathlib import Path

from racetrack.install.image import Image

IMAGES = (
    Image(
        "mzcli",
        Path(__file__).with_name("mzcli.Dockerfile"),
        packages=("postgresql-client",),  # psql
    ),
)
