"""Names of services in docker-compose.yml, and labels by which containers are found."""

from collections.abc import Sequence

PROJECT = "com.docker.compose.project"
SERVICE = "com.docker.compose.service"
# In docker-compose.yml, Redpanda is both the broker and the schema registry.
CALLED = {"broker": "redpanda", "registry": "redpanda"}
SHOWN = {"redpanda": "broker"}


def called(service: str) -> str:
    """Return a service's name in docker-compose.yml."""
    return CALLED.get(service, service)


def shown(name: str) -> str:
    """Return the harness's name for a service in docker-compose.yml."""
    return SHOWN.get(name, name)


def each_once(services: Sequence[str]) -> list[str]:
    """Return the names of these services in docker-compose.yml, without duplicates."""
    return list(dict.fromkeys(map(called, services)))
