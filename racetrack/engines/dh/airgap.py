"""Deephaven's image, where none can be pulled."""

from pathlib import Path

from racetrack.install.image import Image

IMAGES = (
    Image(
        "deephaven",
        Path(__file__).with_name("airgap.Dockerfile"),
        installs="deephaven",
        locks=("racetrack/engines/dh/requirements.lock",),
        versions=("DEEPHAVEN_VERSION",),
        runs=("deephaven",),
        files=("racetrack/engines/dh/server.py", "racetrack/engines/dh/logback.xml"),
    ),
)
