"""Checks whether a Docker engine can be used, and whether its containers can be measured here."""

import json
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

import docker
from docker.context import ContextAPI
from docker.errors import DockerException

from racetrack import host
from racetrack.errors import SetupError
from racetrack.stack.contract import Unmeasurable

# `start_interval` of health checks needs this API version. Images built here do not use that
# option.
NEEDS_API = (1, 44)
NEEDS_API_AIRGAP = (1, 41)
# Since this version a second compose file may override services from an included file.
NEEDS_COMPOSE = (2, 24, 6)
ANSWER_WITHIN_S = 30
SOCKET_ANSWERS_WITHIN_S = 10.0
# Each service's log is read over its own connection.
CONNECTIONS = 32
ELSEWHERE = "Run Racetrack on a Linux machine with a Docker engine of its own"


class NoDocker(SetupError):
    """Docker can't be used here. The message states the reason and the remedy in one line."""

    def __init__(self, why: str, remedy: str) -> None:
        native = ", or set RUNTIME=native" if host.runs_native() else ""
        super().__init__(f"{why[0].upper()}{why[1:]}. {remedy}{native}.")
        self.why = why


@dataclass(frozen=True)
class Docker:
    """A Docker engine that can be used, on this machine or in a virtual machine on it."""

    client: docker.DockerClient
    version: str
    compose_version: str
    memory_bytes: int  # of the machine or virtual machine in which containers run
    unmeasurable: Unmeasurable | None  # set if containers run in a virtual machine


def listener_is_visible(path: str) -> bool:
    """Return whether the process that listens on a Unix socket can be seen here.

    It can't in a container into which the engine's socket is mounted: there the kernel reports pid
    0.
    """
    if not hasattr(socket, "SO_PEERCRED"):  # macOS, where the engine is in a virtual machine
        return True
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SOCKET_ANSWERS_WITHIN_S)
        connection.connect(path)
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
        )
    pid, *_ = struct.unpack("3i", credentials)
    return bool(pid)


def find(
    *,
    airgap: bool,
    host_name: str = platform.node(),
    is_visible: Callable[[str], bool] = listener_is_visible,
) -> Docker:
    """Return the Docker engine; start nothing.

    `host_name` is this machine's, and `is_visible` returns whether the process that listens at a
    socket can be seen from here.

    Raises:
        NoDocker: no engine can be used; the message contains the reason.
    """
    if shutil.which("docker") is None:
        raise NoDocker("there is no `docker` on PATH", "Install Docker")
    where = _endpoint()
    if urlparse(where).scheme in ("tcp", "ssh", "http", "https"):
        raise NoDocker(
            f"the Docker engine runs elsewhere ({where}), where this folder's files are not, and"
            " what is in its containers can't be measured from here",
            "Run Racetrack where the engine is",
        )
    client = _connect()
    version = client.version()
    _require_docker(version)
    _require_api(version, NEEDS_API_AIRGAP if airgap else NEEDS_API)
    info = client.info()
    unmeasurable = why_unmeasurable(info, host_name)
    if unmeasurable is None and not is_visible(urlparse(where).path):
        raise NoDocker(
            "Racetrack runs in a container itself, and the Docker engine outside of it, where its"
            " containers can't be seen",
            "Run Racetrack outside, or in a container with the machine's own processes"
            " (--pid=host)",
        )
    return Docker(
        client, str(version["Version"]), _compose_version(), int(info["MemTotal"]), unmeasurable
    )


def _endpoint() -> str:
    """Return the address that the `docker` command uses, from DOCKER_HOST or its context."""
    if host := os.environ.get("DOCKER_HOST"):
        return host
    name = os.environ.get("DOCKER_CONTEXT")
    context = ContextAPI.get_context(name)
    if context is None:
        raise NoDocker(
            f"the Docker context {name or 'that is set'} can't be found",
            "Choose one of `docker context ls` with `docker context use`",
        )
    return str(context.Host)


def _connect() -> docker.DockerClient:
    """Return a client of the engine that the `docker` command uses."""
    try:
        return docker.from_env(timeout=ANSWER_WITHIN_S, max_pool_size=CONNECTIONS)
    except (DockerException, OSError, ValueError) as error:
        if "permission denied" in str(error).lower():
            raise NoDocker(
                "this user may not use the Docker engine (permission denied)",
                "Have it added to the group `docker` and log in again",
            ) from None
        raise NoDocker(f"no Docker engine answers at {_endpoint()}", "Start it") from None


def _require_docker(version: Mapping[str, Any]) -> None:
    """Reject Podman, which implements Docker's API in a sufficient version."""
    if any(part.get("Name") == "Podman Engine" for part in version.get("Components") or []):
        raise NoDocker(
            f"Podman {version.get('Version')} answers in Docker's place, and these containers"
            " have never been run with it",
            "Install Docker, and point DOCKER_HOST at it",
        )


def _require_api(version: Mapping[str, object], needed: tuple[int, int]) -> None:
    api = str(version.get("ApiVersion", "0.0"))
    if _numbers(api) < needed:
        wanted = ".".join(map(str, needed))
        raise NoDocker(
            f"Docker {version.get('Version')} is too old: its API is {api}, and {wanted} is needed",
            "Upgrade it",
        )


def _compose_version() -> str:
    done = subprocess.run(
        ["docker", "compose", "version", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NoDocker("there is no `docker compose` (the plugin, version 2)", "Install it")
    version = str(json.loads(done.stdout)["version"])
    if _numbers(version) < NEEDS_COMPOSE:
        wanted = ".".join(map(str, NEEDS_COMPOSE))
        raise NoDocker(f"the compose plugin {version} is too old, {wanted} is needed", "Upgrade it")
    return version


def _numbers(version: str) -> tuple[int, ...]:
    """Parse a version: `v2.24.4-1` → (2, 24, 4)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


@dataclass(frozen=True)
class Product:
    """A product that runs Docker in a virtual machine.

    The host name, operating system or kernel version of its engine contains `mark` (in lower case).
    `remedy` names a place where Racetrack can measure.
    """

    title: str
    mark: str
    remedy: str = ELSEWHERE


# The first match counts: descriptions of Rancher Desktop and Colima contain Lima's mark, too.
PRODUCTS = (
    Product("Docker Desktop", "docker desktop"),
    Product(
        "OrbStack",
        "orbstack",
        "Run Racetrack in a Linux machine of OrbStack's (`orb create debian:bookworm`)",
    ),
    Product("Rancher Desktop", "rancher"),
    Product("Colima", "colima", "Run Racetrack inside it (`colima ssh`), or on a Linux machine"),
    Product("Lima", "lima-", "Run Racetrack inside it (`limactl shell`), or on a Linux machine"),
)
# On Windows, these products run containers in a WSL 2 distribution of their own. It shares the
# kernel with the user's Linux distribution, but not the process ids:
# https://wsl.dev/technical-documentation/init and
# https://github.com/rancher-sandbox/rancher-desktop/issues/5585.
BESIDE = ("Docker Desktop", "Rancher Desktop WSL Distribution")


def why_unmeasurable(info: Mapping[str, object], host_name: str) -> Unmeasurable | None:
    """Return why processes of containers can't be seen here, according to `docker info`.

    None if they can. A missing control group (containers.py) would also reveal that they can't, but
    only after a container has been started.
    """
    kernel, here = str(info.get("KernelVersion", "unknown")), platform.release()
    title, remedy = _product(info)
    if kernel != here:
        return Unmeasurable(
            f"Docker's containers run in a virtual machine ({title}, kernel {kernel}; the kernel"
            f" here is {here}), so that their processes can't be seen",
            remedy,
        )
    if info.get("OperatingSystem") in BESIDE:
        return Unmeasurable(
            f"Docker's containers run in another Linux on this kernel ({title}), so that their"
            " processes can't be seen",
            "Install a Docker engine in this Linux (https://docs.docker.com/engine/install/), and"
            " have DOCKER_HOST point at it",
        )
    # A virtual machine may run the same kernel as this machine. Racetrack itself may also run
    # inside the virtual machine, where it can measure.
    by_name = _known(str(info.get("Name", "")), str(info.get("OperatingSystem", "")))
    if by_name and info.get("Name") != host_name:
        return Unmeasurable(
            f"Docker's containers run in a virtual machine ({by_name.title}, whose kernel {kernel}"
            " is as the one here), so that their processes can't be seen",
            by_name.remedy,
        )
    return None


def _product(info: Mapping[str, object]) -> tuple[str, str]:
    """Return the product's name and remedy; for an unknown product, the engine's description."""
    name, system, kernel = (
        str(info.get(key, "")) for key in ("Name", "OperatingSystem", "KernelVersion")
    )
    if product := _known(name, system, kernel):
        return product.title, product.remedy
    return f"{name}, {system}", ELSEWHERE


def _known(*descriptions: str) -> Product | None:
    """Return the first product whose mark is contained in one of the descriptions."""
    text = " ".join(descriptions).lower()
    return next((product for product in PRODUCTS if product.mark in text), None)
