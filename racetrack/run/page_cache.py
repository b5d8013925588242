"""Memory of a virtual machine, kept from its hypervisor in the page cache.

With free page reporting (of virtio's memory balloon) a machine gives its free pages to the
hypervisor. The first write to one waits until the hypervisor has found it a page, and counts as
steal time, although no neighbour used the machine. Pages of the page cache stay, and the kernel
gives them to programs at once.
"""

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from racetrack.units import BYTES_PER_GIB

DEVICES = Path("/sys/bus/virtio/devices")
# VIRTIO_ID_BALLOON and VIRTIO_BALLOON_F_REPORTING of Linux' virtio_ids.h and virtio_balloon.h.
BALLOON, REPORTING = "0x0005", 5
# The kernel reads ahead by 2 MiB. Free memory is compared after a whole GiB, since what ends
# meanwhile frees some, too.
READ_BYTES, STEP_BYTES = 2 << 20, BYTES_PER_GIB


def free_memory() -> int:
    """Return the bytes of memory that nothing uses."""
    return int(psutil.virtual_memory().free)


def gives_memory_back(devices: Path = DEVICES) -> bool:
    """Return whether this machine gives its free memory to a hypervisor."""
    balloons = [
        path for path in devices.glob("*") if (path / "device").read_text().strip() == BALLOON
    ]
    return any((path / "features").read_text()[REPORTING] == "1" for path in balloons)


class PageCache:
    """The page cache of this machine, filled by a file that has only holes. The file and its pages
    are gone when this process ends."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], free: Callable[[], int] = free_memory
    ) -> None:
        """Create the file in a folder, which must be on a disk: a tmpfs keeps no pages of holes.
        `free` returns the bytes of free memory."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # for as long as the process
        self._say, self._free = say, free

    def fill(self) -> None:
        """Have the kernel read holes until free memory does not decrease any more, and print how
        much that was."""
        self._say("  taking back the free memory that this machine gave to its hypervisor")
        began_s, before, file = time.monotonic(), self._free(), self._file.fileno()
        start = os.fstat(file).st_size
        os.ftruncate(file, start + before)

        def read(at: int) -> None:
            os.posix_fadvise(file, at, READ_BYTES, os.POSIX_FADV_WILLNEED)

        with ThreadPoolExecutor() as threads:
            for at in range(start, start + before, STEP_BYTES):
                free = self._free()
                deque(threads.map(read, range(at, at + STEP_BYTES, READ_BYTES)), maxlen=0)
                if free - self._free() < STEP_BYTES / 2:
                    break
        taken = (before - self._free()) / BYTES_PER_GIB
        self._say(f"  took {taken:.1f} GiB in {time.monotonic() - began_s:.0f} s")
