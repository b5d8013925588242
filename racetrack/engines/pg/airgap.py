"""PostgreSQL's images, where none can be pulled."""

from pathlib import Path

from racetrack.install.image import Image

# What the feeder imports of the harness, and itself.
FEED = (
    *(f"racetrack/{name}.py" for name in ("__init__", "environment", "errors", "plugins")),
    *(f"racetrack/{name}.py" for name in ("config", "units")),
    *(f"racetrack/stack/{name}.py" for name in ("__init__", "avro", "contract")),
    *(f"racetrack/stack/{name}.py" for name in ("net", "service")),
    *(f"racetrack/engines/{name}.py" for name in ("__init__", "pg/__init__")),
    *(f"racetrack/engines/pg/feed/{name}.py" for name in ("__init__", "consumer", "plan", "sink")),
)

IMAGES = (
    Image("postgres", parts=("postgres",), prepare=("postgres",), runs=("postgres",)),
    Image(
        "pgfeed",
        Path(__file__).with_name("feed") / "airgap.Dockerfile",
        installs="pgfeed",
        locks=("racetrack/engines/pg/feed/requirements.lock",),
        files=FEED,
    ),
)
