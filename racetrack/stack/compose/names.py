"""The names of services in docker-compose.yml, and the labels by which containers are found."""

from collections.abc import Sequence

PROJECT = "com.docker.compose.project"
SERVICE = "com.docker.compose.service"
# Redpanda is the broker and the schema registry.
CALLED = {"broker": "redpanda", "registry": "redpanda"}
SHOWN = {"redpanda": "broker"}


def called(service: str) -> str:
    """The name in docker-compose.yml."""
    return CALLED.get(service, service)


def shown(name: str) -> str:
    """The name that the rest of the harness knows a container by."""
    return SHOWN.get(name, name)


def each_once(services: Sequence[str]) -> list[str]:
    """The names in docker-compose.yml of some services."""
    return list(dict.fromkeys(map(called, services)))
