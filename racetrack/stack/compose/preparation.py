"""Prepares the start of containers: pulls images and checks the available memory."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from racetrack.errors import SetupError
from racetrack.stack.contract import Say
from racetrack.units import BYTES_PER_GIB

REPORT_EVERY_S = 10.0
MB = 1_000_000
UNITS = {"m": 1 << 20, "g": BYTES_PER_GIB}


def is_present(client: docker.DockerClient, image: str) -> bool:
    """Return whether the engine has an image."""
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    return True


def pull(
    client: docker.DockerClient, image: str, say: Say, report_every_s: float = REPORT_EVERY_S
) -> None:
    """Pull an image from its registry; report progress every `report_every_s`.

    Raises:
        SetupError: the image can't be pulled.
    """
    began = reported = time.monotonic()
    say(f"  pulling {image}")
    layers: dict[str, tuple[int, int]] = {}
    name, _, tag = image.rpartition(":")
    try:
        for event in _checked(client.api.pull(name, tag=tag, stream=True, decode=True)):
            _count(layers, event)
            if time.monotonic() - reported > report_every_s:
                reported = time.monotonic()
                say(f"  {image}: {_progress(layers)}")
    except (DockerException, OSError) as error:
        why = error.explanation if isinstance(error, APIError) else error
        raise SetupError(
            f"The image {image} can't be pulled: {why}. Check the network, or use"
            " RUNTIME=native, or images built here (`./race images`, then AIRGAP=true)."
        ) from error
    total = sum(size for _, size in layers.values())
    say(f"  pulled {image}, {total / MB:,.0f} MB in {time.monotonic() - began:.0f} s")


def _checked(events: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Yield the events of a pull. Raise DockerException at the first event that reports an
    error."""
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


def require_memory(
    needed: Mapping[str, str], available_bytes: int, *, virtual: bool = False
) -> None:
    """Check that the machine has enough memory before anything starts.

    `needed` maps each service to sizes whose sum it may use, such as `4g 300m`. `virtual` means
    that `available_bytes` is the memory of the virtual machine in which containers run.

    Raises:
        SetupError: there is not enough memory.
    """
    sizes = {name: sum(map(_bytes, listed.split())) for name, listed in needed.items()}
    here = "are available. Stop something"
    if virtual:
        here = "are what Docker's virtual machine has. Give it more"
    if sum(sizes.values()) > available_bytes:
        by_size = sorted(sizes.items(), key=lambda item: -item[1])
        largest = ", ".join(f"{name} {size / BYTES_PER_GIB:.1f}" for name, size in by_size)
        all_gib = sum(sizes.values()) / BYTES_PER_GIB
        available_gib = available_bytes / BYTES_PER_GIB
        raise SetupError(
            f"Not enough memory: the services may use {all_gib:.1f} GiB ({largest}), and"
            f" {available_gib:.1f} GiB {here}, or lower their heaps, memory and tmpfs in .env."
        )


def _bytes(size: str) -> int:
    return int(size[:-1]) * UNITS[size[-1].lower()]
