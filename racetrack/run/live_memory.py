"""Memory of a live session that may run out: how long it lasts, and when to stop the load."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from racetrack.probes.heap import HeapProbe
from racetrack.run.checks import LEAST_BYTES, free_space
from racetrack.stack.contract import Stack

GIB = 1024**3
WARN_S = 300.0
# The load stops if memory lasts less than this: restarting a read or a collection takes seconds.
STOP_S = 20.0
GROWTH_OVER_S = 60.0
# What collections leave is known once in minutes.
HEAP_GROWTH_OVER_S = 600.0
SETTLES_S = 30.0
FULL = 0.92  # share of a limit beyond which the load stops, however slowly it grows
Read = Callable[[], tuple[int, int] | None]  # used and limit in bytes


@dataclass(frozen=True)
class Outlook:
    """Forecast for one kind of memory: bytes used, their limit, and the seconds until that limit
    is reached (None if the use does not grow)."""

    what: str
    used: int
    limit: int
    left_s: float | None

    @property
    def warns(self) -> bool:
        """True if the limit is reached in less than WARN_S."""
        return self.left_s is not None and self.left_s < WARN_S

    @property
    def is_ending(self) -> bool:
        """True if the load has to stop."""
        soon = self.left_s is not None and self.left_s < STOP_S
        return soon or (self.used > FULL * self.limit and self.left_s is not None)

    def as_text(self) -> str:
        """Return the outlook in words."""
        used = f"{self.used / GIB:.2f} of {self.limit / GIB:.2f} GiB used"
        if self.left_s is None:
            return f"{self.what}: {used}, not growing"
        minutes = self.left_s / 60
        left = f"{minutes:.0f} min" if minutes >= 1 else f"{self.left_s:.0f} s"
        return f"{self.what}: {used}, lasts {left} at this rate"


class Forecast:
    """Forecast of one kind of memory from its growth in the last `over_s`. There is none in the
    first `settles_s`, in which for example JVMs take their heaps."""

    def __init__(
        self, what: str, read: Read, over_s: float = GROWTH_OVER_S, settles_s: float = 0.0
    ) -> None:
        self.what, self._read = what, read
        self._over_s, self._settles_s = over_s, settles_s
        self._rows: deque[tuple[float, int]] = deque()

    def at(self, now_s: float) -> Outlook | None:
        """Read the use now and return the outlook; None if it is unknown."""
        if not (read := self._read()):
            return None
        used, limit = read
        self._rows.append((now_s, used))
        while now_s - self._rows[0][0] > self._over_s:
            self._rows.popleft()
        before_s, before = self._rows[0]
        if used <= before or now_s <= before_s + self._settles_s:
            return Outlook(self.what, used, limit, None)
        per_s = (used - before) / (now_s - before_s)
        return Outlook(self.what, used, limit, max(0.0, (limit - used) / per_s))


class MemoryWatch:
    """Watches the services' data, the heaps of JVMs, and the machine's memory."""

    def __init__(self, stack: Stack, heaps: HeapProbe) -> None:
        self._stack, self._heaps = stack, heaps
        self._machine = Forecast("machine", _machine, settles_s=SETTLES_S)
        self._of_heaps: dict[str, Forecast] = {}
        self._of_data: dict[Path, Forecast] = {}

    def outlooks(self) -> list[Outlook]:
        """Return the outlook of each kind of memory that is known."""
        for folder in self._stack.data_folders():
            if folder.path not in self._of_data:
                self._of_data[folder.path] = Forecast(f"data in {folder.name}", _free(folder.path))
        for service in list(self._heaps.floors):
            if service not in self._of_heaps:
                read = partial(self._heap, service)
                forecast = Forecast(f"heap of {service}", read, HEAP_GROWTH_OVER_S, SETTLES_S)
                self._of_heaps[service] = forecast
        now_s = time.monotonic()
        forecasts = (*self._of_data.values(), *self._of_heaps.values(), self._machine)
        return [outlook for each in forecasts if (outlook := each.at(now_s))]

    def unknown(self) -> list[str]:
        """Return a text for each heap that can't be read now."""
        return [
            f"heap of {name}: unknown, {why}" for name, why in list(self._heaps.unknown.items())
        ]

    def _heap(self, service: str) -> tuple[int, int]:
        floor = self._heaps.floors[service]
        return floor.used, floor.limit


def _free(path: Path) -> Read:
    """Return a function that reads the use of a file system. Its limit is where a run would end."""

    def read() -> tuple[int, int] | None:
        try:
            free, total = free_space(path)
        except OSError:  # the container has just ended
            return None
        return total - free, total - LEAST_BYTES

    return read


def _machine() -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.total - memory.available, memory.total
