"""The images of the compose stack for sites that may pull none, from package registries alone.

A Debian by debootstrap (racetrack/install/base.py), on it a small Python that starts services
(images/serve.Dockerfile), on that one image a service. Parts are those of the native runtime: what
can be moved is copied from the cache, Python environments are installed inside by the same recipe.
"""

from dataclasses import dataclass

from racetrack import __version__


@dataclass(frozen=True)
class Service:
    """An image made of parts from the cache: what is prepared in it, and what it runs."""

    name: str
    parts: tuple[str, ...]
    prepare: tuple[str, ...]
    runs: tuple[str, ...]
    only_to_prepare: tuple[str, ...] = ()


SERVICES = (
    Service("mysql", ("mysql",), ("mysql",), ("mysql",)),
    Service(
        "redpanda",
        ("kafka", "registry", "nginx"),
        ("registry", "broker"),
        ("broker", "registry"),
    ),
    Service(
        "debezium",
        ("kafka", "debezium", "mysql"),
        ("mysql", "broker", "debezium"),
        ("debezium",),
        only_to_prepare=("mysql",),
    ),
    Service("flink", ("flink",), ("flink",), ("flink",)),
    Service("postgres", ("postgres",), ("postgres",), ("postgres",)),
)
# The others install Python environments, each in its own way.
ENVIRONMENTS = ("deephaven", "loadgen", "pgfeed", "mzcli")
NAMES = ("base", "serve", *(service.name for service in SERVICES), *ENVIRONMENTS)
FROM_CACHE = (*dict.fromkeys(part for service in SERVICES for part in service.parts), "base")


def repository(image: str) -> str:
    """The name without its tag."""
    return f"racetrack/airgap-{image}"


def image_name(image: str) -> str:
    """`racetrack/airgap-<image>:<version of Racetrack>`; an image is called like its service."""
    return f"{repository(image)}:{__version__}"
