"""Tests of what precedes a start of containers: images are pulled, and the memory suffices."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import docker
import pytest
from docker.errors import APIError

from racetrack.errors import SetupError
from racetrack.stack.compose import preparation
from racetrack.units import BYTES_PER_GIB as GIB


class Registry:
    """A fake client of Docker that returns these events of a pull, as an engine does."""

    def __init__(self, *events: dict[str, Any] | Exception) -> None:
        self._events = events
        self.api = self

    def pull(self, name: str, tag: str, *, stream: bool, decode: bool) -> Iterator[dict[str, Any]]:
        assert (name, tag, stream, decode) == ("registry.example/mysql", "8.4.10", True, True)
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event


def pulled(*events: dict[str, Any] | Exception, report_every_s: float = 10.0) -> list[str]:
    lines: list[str] = []
    client: docker.DockerClient = Registry(*events)  # type: ignore[assignment]
    preparation.pull(client, "registry.example/mysql:8.4.10", lines.append, report_every_s)
    return lines


def downloading(layer: str, here: int, of: int) -> dict[str, Any]:
    detail = {"current": here, "total": of}
    return {"status": "Downloading", "id": layer, "progressDetail": detail}


def test_it_reports_how_far_it_is() -> None:
    lines = pulled(
        {"status": "Pulling from mysql", "id": "8.4.10"},
        downloading("a", 1_000_000, 30_000_000),
        downloading("b", 2_000_000, 10_000_000),
        {"status": "Download complete", "progressDetail": {}, "id": "a"},
        report_every_s=-1.0,
    )
    image = "registry.example/mysql:8.4.10"
    assert lines[0] == f"  pulling {image}"
    assert lines[-2] == f"  {image}: 32 of 40 MB"
    assert lines[-1].startswith(f"  pulled {image}, 40 MB in ")


@pytest.mark.parametrize(
    "failure",
    [
        {"error": "no route to host", "errorDetail": {"message": "no route to host"}},
        APIError("500 Server Error", explanation="no route to host"),
    ],
    ids=["in the middle", "at once"],
)
def test_it_reports_why_and_what_to_do(failure: dict[str, Any] | Exception) -> None:
    with pytest.raises(SetupError, match=r"can't be pulled: no route to host\..*`./race images`"):
        pulled(downloading("a", 1, 2), failure)


@pytest.mark.parametrize(
    ("gib", "virtual", "reason"),
    [
        (10.1, False, ""),
        (10, False, r"10\.1 GiB \(generator 8\.3, .* 10\.0 GiB are "),  # who needs most, first
        (11, True, ""),
        (2, True, r"2\.0 GiB are what Docker's virtual machine has\. Give"),
    ],
)
def test_too_little_memory_is_refused(gib: float, virtual: bool, reason: str) -> None:
    needed = {"mysql": "500m", "redpanda": "1G 300m", "generator": "8g 300m"}
    with pytest.raises(SetupError, match=reason) if reason else nullcontext():
        preparation.require_memory(needed, int(gib * GIB), virtual=virtual)
