"""Which images are here, and getting those that are not: a start must not wait for a network."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from racetrack.errors import SetupError
from racetrack.stack.contract import Say

TELL_EVERY_S = 10.0
MB = 1_000_000


def have(client: docker.DockerClient, image: str) -> bool:
    """Whether the engine has it."""
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    return True


def pull(client: docker.DockerClient, image: str, say: Say) -> None:
    """Get an image from its registry; says how far it is every ten seconds.

    Raises:
        SetupError: it can't be had.
    """
    began = told = time.monotonic()
    say(f"  pulling {image}")
    layers: dict[str, tuple[int, int]] = {}
    name, _, tag = image.rpartition(":")
    try:
        for event in _checked(client.api.pull(name, tag=tag, stream=True, decode=True)):
            _count(layers, event)
            if time.monotonic() - told > TELL_EVERY_S:
                told = time.monotonic()
                say(f"  {image}: {_progress(layers)}")
    except (DockerException, OSError) as error:
        why = error.explanation if isinstance(error, APIError) else error
        raise SetupError(
            f"The image {image} can't be pulled: {why}. Check the network, or do without:"
            " RUNTIME=native, or images made here (`./race images`, then AIRGAP=true)."
        ) from error
    total = sum(size for _, size in layers.values())
    say(f"  pulled {image}, {total / MB:,.0f} MB in {time.monotonic() - began:.0f} s")


def _checked(events: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The engine tells of a failure in the middle of its answer, too."""
    for event in events:
        if "error" in event:
            raise DockerException(event["error"])
        yield event


def _count(layers: dict[str, tuple[int, int]], event: Mapping[str, Any]) -> None:
    detail = event.get("progressDetail") or {}
    if event.get("status") == "Downloading" and "total" in detail:
        layers[event["id"]] = int(detail["current"]), int(detail["total"])
    elif event.get("status") == "Download complete" and event["id"] in layers:
        _, size = layers[event["id"]]
        layers[event["id"]] = size, size


def _progress(layers: Mapping[str, tuple[int, int]]) -> str:
    here, total = (
        (sum(column) for column in zip(*layers.values(), strict=True)) if layers else (0, 0)
    )
    return f"{here / MB:,.0f} of {total / MB:,.0f} MB"
