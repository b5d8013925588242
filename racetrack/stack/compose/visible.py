"""Whether what runs in containers can be seen from here: not if Docker runs in a virtual machine.

Told by what the engine says of itself, before anything starts. A control group that can't be found
(cgroup.py) would tell the same, but only of a container that runs.
"""

import platform
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from racetrack.stack.contract import Unmeasurable

ANSWER_WITHIN_S = 10.0
ELSEWHERE = "Run Racetrack on a Linux machine with a Docker engine of its own"


@dataclass(frozen=True)
class Product:
    """One that brings Docker in a virtual machine. `mark` is in its engine's host name, operating
    system or kernel version, in lower case; `remedy` says where Racetrack can measure."""

    title: str
    mark: str
    remedy: str = ELSEWHERE


# The first that fits: Rancher Desktop and Colima are built on Lima, and are named after it, too.
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
# On Windows they run on the kernel of the user's own Linux (WSL 2), but as a distribution of their
# own, and each of those has its own process ids: https://wsl.dev/technical-documentation/init and
# https://github.com/rancher-sandbox/rancher-desktop/issues/5585.
BESIDE = ("Docker Desktop", "Rancher Desktop WSL Distribution")


def why_not(info: Mapping[str, object]) -> Unmeasurable | None:
    """Why containers' processes can't be seen here, by what the engine answers to `docker info`."""
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
    # One with the same distribution may have this kernel, too. Within it Racetrack works.
    by_name = _known(str(info.get("Name", "")), str(info.get("OperatingSystem", "")))
    if by_name and info.get("Name") != platform.node():
        return Unmeasurable(
            f"Docker's containers run in a virtual machine ({by_name.title}, whose kernel {kernel}"
            " is as the one here), so that their processes can't be seen",
            by_name.remedy,
        )
    return None


def listener_is_seen(path: str) -> bool:
    """Whether the process that listens on a Unix socket is one that can be seen here: the kernel
    says 0 for one that can't, as within a container that was given the socket of the engine."""
    if not hasattr(socket, "SO_PEERCRED"):  # macOS, where the engine is in a virtual machine anyway
        return True
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(ANSWER_WITHIN_S)
        asked.connect(path)
        told = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, *_ = struct.unpack("3i", told)
    return bool(pid)


def _product(info: Mapping[str, object]) -> tuple[str, str]:
    """What it is called, and what to do; of one that is not known, what it says of itself."""
    name, system, kernel = (
        str(info.get(key, "")) for key in ("Name", "OperatingSystem", "KernelVersion")
    )
    if product := _known(name, system, kernel):
        return product.title, product.remedy
    return f"{name}, {system}", ELSEWHERE


def _known(*told: str) -> Product | None:
    """The product whose mark is in what an engine told."""
    text = " ".join(told).lower()
    return next((product for product in PRODUCTS if product.mark in text), None)
