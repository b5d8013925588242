"""Sources of database changes, one per kind: their schedules, contents and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from loadgen import counters as c
from loadgen.clock import NS_PER_MS
from loadgen.schedule import Schedule

# Limit per source and iteration, so that catching up does not block the control socket.
MAX_PER_TICK = 1_000


class Order(NamedTuple):
    """A change to be written: its due time, its source, and the argument for `Source.write`."""

    due_ns: int
    source: Source
    work: Any


class Source:
    """One kind of event with its own rate. Event n (0-based) is a function of the seed and n."""

    name = ""  # singular
    help_text = ""  # for the control port's help
    # True if the rate is 0 by default. The log leaves out an optional source without events.
    optional = False
    # Number of events to send after the last event of the main topic, when its rate becomes 0.
    last_events = 0

    def __init__(self, schedule: Schedule, start_milli_per_s: int = 0) -> None:
        self.schedule = schedule
        self.start_milli_per_s = start_milli_per_s
        self.done = 0
        self.refused = 0
        self.lateness = [0] * c.CLASSES  # histogram of lateness (due to committed)
        self._made = 0
        self._newest_ms = 0

    @property
    def key(self) -> str:
        """Key of this source's rate at the control port."""
        return f"{self.name}s_per_second"

    def make(self, n: int, due_ns: int) -> Any:
        """Return event n, in the form that `write` expects."""
        raise NotImplementedError

    def write(self, database: Any, work: Sequence[Any]) -> int:
        """Write events in one transaction; return how many had no row to change."""
        raise NotImplementedError

    def due(self, now_ns: int) -> Iterator[Order]:
        """Yield events that became due, at most MAX_PER_TICK."""
        due = min(self.schedule.due_by(now_ns), self._made + MAX_PER_TICK)
        while self._made < due:
            due_ns = self.schedule.due_at(self._made + 1)
            self._made += 1
            self._newest_ms = due_ns // NS_PER_MS
            yield Order(due_ns, self, self.make(self._made - 1, due_ns))
        self.schedule.forget(self._made)

    def counts(self, now_ns: int) -> dict[str, int]:
        """Return the counts of due, done and refused events."""
        return {"due": self.schedule.due_by(now_ns), "done": self.done, "refused": self.refused}

    @property
    def newest(self) -> list[int]:
        """Number of the newest event (1 for the first), and its due time, epoch milliseconds."""
        return [self._made, self._newest_ms]
