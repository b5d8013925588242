"""Whether the machine has the memory that the services were told they may use."""

from collections.abc import Mapping

import psutil

from racetrack.errors import SetupError

GIB = 1 << 30
UNITS = {"m": 1 << 20, "g": GIB}


def require(needed: Mapping[str, str], virtual_bytes: int | None = None) -> None:
    """Look, before anything starts. `needed` says of each service what may come together, such as
    `4g 300m`; `virtual_bytes` is what the virtual machine has that they run in, if they do.

    Raises:
        SetupError: there is too little.
    """
    sizes = {name: sum(map(_bytes, told.split())) for name, told in needed.items()}
    here = "are available. Stop something"
    if virtual_bytes:
        here = "are what Docker's virtual machine has. Give it more"
    available = virtual_bytes or psutil.virtual_memory().available
    if sum(sizes.values()) > available:
        by_size = sorted(sizes.items(), key=lambda item: -item[1])
        largest = ", ".join(f"{name} {size / GIB:.1f}" for name, size in by_size)
        raise SetupError(
            f"Not enough memory: the services may use {sum(sizes.values()) / GIB:.1f} GiB"
            f" ({largest}), and {available / GIB:.1f} GiB {here}, or lower their heaps, memory and"
            " tmpfs in .env."
        )


def _bytes(size: str) -> int:
    return int(size[:-1]) * UNITS[size[-1].lower()]
