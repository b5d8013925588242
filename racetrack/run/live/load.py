"""Load of a live session: rates and profiles, the segments that their changes begin, and the stop
before memory runs out."""

import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from racetrack import host
from racetrack.live.contract import Action, Refused
from racetrack.probes.heap import HeapProbe
from racetrack.run.checks import LEAST_BYTES, space_of
from racetrack.run.live.figures import Values, VerdictWatch
from racetrack.run.live.record import BY_SESSION, SessionLog
from racetrack.run.session import EVENTS, Session
from racetrack.stack.contract import DataFolder, Say, Stack
from racetrack.units import BYTES_PER_GIB
from racetrack.workloads import load_profile
from racetrack.workloads.load_profile import NEVER_S, LoadProfile

WARN_S = 300.0
# The load stops if the memory would last less than this. The margin allows for the seconds that a
# reading or a garbage collection takes.
STOP_S = 20.0
GROWTH_OVER_S = 60.0
# Heaps need a longer time than GROWTH_OVER_S, because it takes minutes until garbage collections
# show how much memory remains in use.
HEAP_GROWTH_OVER_S = 600.0
SETTLES_S = 30.0
FULL = 0.92  # share of a limit beyond which the load stops if the use grows at all
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
        """Return the forecast as text."""
        used = f"{self.used / BYTES_PER_GIB:.2f} of {self.limit / BYTES_PER_GIB:.2f} GiB used"
        if self.left_s is None:
            return f"{self.what}: {used}, not growing"
        minutes = self.left_s / 60
        left = f"{minutes:.0f} min" if minutes >= 1 else f"{self.left_s:.0f} s"
        return f"{self.what}: {used}, lasts {left} at this rate"


class Forecast:
    """Forecast of one kind of memory from its growth in the last `over_s`. In the first
    `settles_s`, in which for example JVMs allocate their heaps, it reports no growth."""

    def __init__(
        self, what: str, read: Read, over_s: float = GROWTH_OVER_S, settles_s: float = 0.0
    ) -> None:
        self.what, self._read = what, read
        self._over_s, self._settles_s = over_s, settles_s
        self._rows: deque[tuple[float, int]] = deque()

    def at(self, now_s: float) -> Outlook | None:
        """Read the current use and return the forecast; None if the use is unknown."""
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
    """Forecasts the use of memory: for the services' data, the heaps of JVMs, and the machine."""

    def __init__(self, stack: Stack, heaps: HeapProbe) -> None:
        self._stack, self._heaps = stack, heaps
        self._machine = Forecast("machine", host.memory, settles_s=SETTLES_S)
        self._of_heaps: dict[str, Forecast] = {}
        self._of_data: dict[Path, Forecast] = {}
        self._folders: dict[Path, DataFolder] = {}

    def outlooks(self) -> list[Outlook]:
        """Return the forecast for each kind of memory whose use is known."""
        self._folders = {folder.path: folder for folder in self._stack.data_folders()}
        for path, folder in self._folders.items():
            if path not in self._of_data:
                self._of_data[path] = Forecast(f"data in {folder.name}", partial(self._data, path))
        for service in list(self._heaps.floors):
            if service not in self._of_heaps:
                read = partial(self._heap, service)
                forecast = Forecast(f"heap of {service}", read, HEAP_GROWTH_OVER_S, SETTLES_S)
                self._of_heaps[service] = forecast
        now_s = time.monotonic()
        forecasts = (*self._of_data.values(), *self._of_heaps.values(), self._machine)
        return [outlook for forecast in forecasts if (outlook := forecast.at(now_s))]

    def unknown(self) -> list[str]:
        """Return a text for each heap that can't be read now."""
        return [
            f"heap of {name}: unknown, {why}" for name, why in list(self._heaps.unknown.items())
        ]

    def _data(self, path: Path) -> tuple[int, int] | None:
        """Return the used bytes of a file system, and the limit at which a run would end."""
        try:
            free, total = space_of(self._folders[path])
        except (KeyError, OSError):  # the container has just ended
            return None
        return total - free, total - LEAST_BYTES

    def _heap(self, service: str) -> tuple[int, int]:
        floor = self._heaps.floors[service]
        return floor.used, floor.limit


TRACERS = "tracer_events"  # their rate is too low to need a control
UNCONTROLLED = (EVENTS, TRACERS)  # counts of events that `set_kind` does not control
STARTING, RUNNING, ENDING = "starting", "running", "ending"
PROFILE_CHANGES = "The load profile changes the rate."


@dataclass
class Now:
    """State of a session that changes while it runs. Only the main thread writes it."""

    phase: str = STARTING
    load_stopped: str = ""  # why the session itself has set the rate to 0
    profile: LoadProfile | None = None
    outlooks: list[Outlook] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # memory whose use can't be read, and why
    figures: Values = field(default_factory=dict)  # the newest value of each series


def counts_of(session: Session) -> dict[str, Any]:
    """Return the generator's latest counts by kind of event."""
    arrivals = session.arrivals
    counts = arrivals.counts if arrivals else {}
    return {name: count for name, count in counts.items() if isinstance(count, dict)}


class LiveLoad:
    """Changes the load in the main thread, records each change, and restarts the verdicts."""

    def __init__(
        self,
        now: Now,
        session: Session,
        log: SessionLog,
        verdicts: Collection[VerdictWatch],
        memory: MemoryWatch,
        say: Say,
    ) -> None:
        self._now, self._session, self._log = now, session, log
        self._verdicts, self._memory, self._say = verdicts, memory, say
        self._profile_from_s = 0.0
        self._warned: set[str] = set()

    def set_rate(self, action: Action, per_s: int) -> None:
        """Set the rate of the main topic. A profile ends."""
        self._require_memory(per_s)
        before = counts_of(self._session).get(EVENTS, {}).get("rate", 0)
        self._session.end_load()
        self._now.profile = None
        self._session.offer(per_s)
        self.begin_segment(action, f"rate {before:,}/s → {per_s:,}/s", per_s)

    def set_profile(self, action: Action, text: str) -> None:
        """Let a load profile drive the rate."""
        self._require_memory(1)
        profile = load_profile.parse(text)
        if not profile.duration_s:
            self.set_rate(action, profile.rate_at(0.0))
            return
        self._session.begin_load(profile, f"load_{self._log.segment.number + 1}.csv")
        self._now.profile, self._profile_from_s = profile, time.monotonic()
        self.begin_segment(action, f"load {profile}")

    def set_kind(self, action: Action, kind: str, per_s: int) -> None:
        """Set the rate of a kind of events other than those of the main topic."""
        counts = counts_of(self._session)
        if kind not in counts or kind in UNCONTROLLED:
            there = ", ".join(name for name in counts if name not in UNCONTROLLED)
            raise Refused(409, f"The workload has no {kind}; it has {there or 'no other events'}.")
        self._require_memory(per_s)
        before = counts[kind]["rate"]
        self._session.offer(per_s, kind)
        self.begin_segment(action, f"{kind} {before:,}/s → {per_s:,}/s")

    def set_reads(self, action: Action, per_s: int) -> None:
        """Set the rate at which the views of each engine are read."""
        before = self._session.reads_per_s
        self._session.set_reads(per_s)
        self.begin_segment(action, f"reads {before:g}/s → {per_s:,}/s")

    def _require_memory(self, per_s: int) -> None:
        if per_s and self._now.load_stopped:
            raise Refused(409, self._now.load_stopped)

    def begin_segment(self, action: Action, text: str, per_s: int | None = None) -> None:
        """Record an action, begin a segment, and restart the verdicts. `per_s` is the rate, if the
        action has just changed it."""
        segment = self._log.record(action, text, begins_segment=True)
        rate = self._current_rate() if per_s is None else per_s
        for verdict in self._verdicts:
            verdict.begin(segment.from_ms, rate, PROFILE_CHANGES if self._now.profile else "")
        self._say(f"  {text}")

    def _current_rate(self) -> int:
        return int(counts_of(self._session).get(EVENTS, {}).get("rate", 0))

    def end_profile_if_over(self) -> None:
        """Begin a segment when the load profile no longer changes the rate."""
        profile, elapsed_s = self._now.profile, time.monotonic() - self._profile_from_s
        if profile and profile.next_change_s(elapsed_s) == NEVER_S:
            self._now.profile = None
            over = Action("load", {}, BY_SESSION)
            self.begin_segment(over, f"the profile is over, at {self._current_rate():,}/s")

    def watch_memory(self) -> None:
        """Warn of memory that will run out, and stop the load before it does."""
        self._now.outlooks, self._now.unknown = self._memory.outlooks(), self._memory.unknown()
        for outlook in self._now.outlooks:
            if outlook.warns and outlook.what not in self._warned:
                self._log.add("warning", outlook.as_text())
            (self._warned.add if outlook.warns else self._warned.discard)(outlook.what)
        ending = [outlook for outlook in self._now.outlooks if outlook.is_ending]
        rates = {name: count["rate"] for name, count in counts_of(self._session).items()}
        loaded = [name for name, rate in rates.items() if rate and name != TRACERS]
        if ending and loaded:
            self._session.end_load()
            self._now.profile = None
            for name in loaded:
                self._session.offer(0, name)
            self._now.load_stopped = f"{ending[0].as_text()}: the session set the rate to 0."
            self.begin_segment(Action("rate", {"per_s": 0}, BY_SESSION), self._now.load_stopped)
            self._log.add("load_stopped", self._now.load_stopped)
        elif self._now.load_stopped and not ending:
            self._now.load_stopped = ""
