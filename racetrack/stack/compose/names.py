"""The names of services in docker-compose.yml, and the labels by which containers are found."""

from collections.abc import Sequence

PROJECT = "com.docker.compose.project"
SERVICE = "com.docker.compose.service"
# Redpanda is the broker and the schema registry.
CALLED = {"broker": "redpanda", "registry": "redpanda"}
SHOWN = {"redpanda": "broker"}


def called(service: str) -> str:
    """Return a service's name in docker-compose.yml."""
    return CALLED.get(service, service)


def shown(name: str) -> str:
    """Return the harness's name for a service of docker-compose.yml."""
    return SHOWN.get(name, name)


def each_once(services: Sequence[str]) -> list[str]:
    """Return the names in docker-compose.yml of some services, without duplicates."""
    return list(dict.fromkeys(map(called, services)))
