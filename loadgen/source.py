"""What happens to the database, a source for each kind: when it is due, what it is, and how many
are done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from loadgen import counters as c
from loadgen.clock import NS_PER_MS
from loadgen.schedule import Schedule

# How many are made in one go, so that catching up never keeps the control socket waiting.
MAX_PER_TICK = 1_000


class Order(NamedTuple):
    """Something to be written: when it was due, by whose account, and what `Source.write` takes."""

    due_ns: int
    source: Source
    work: Any


class Source:
    """One kind of event, at its own rate. Number n (0-based) is a function of the seed and n."""

    name = ""  # of one of them
    help_text = ""  # what the control port's help says of its rate
    # Off as a rule: while it is, the log has nothing to say of it.
    optional = False

    def __init__(self, schedule: Schedule, start_milli_per_s: int = 0) -> None:
        self.schedule = schedule
        self.start_milli_per_s = start_milli_per_s
        self.done = 0
        self.refused = 0
        self.lateness = [0] * c.CLASSES  # by class, from due to committed
        self._made = 0
        self._newest_ms = 0

    @property
    def key(self) -> str:
        """The name of its rate at the control port."""
        return f"{self.name}s_per_second"

    def make(self, n: int, due_ns: int) -> Any:
        """Event n, as `write` takes it."""
        raise NotImplementedError

    def write(self, database: Any, work: Sequence[Any]) -> int:
        """Write some, in one transaction; how many of them found nothing to change."""
        raise NotImplementedError

    def due(self, now_ns: int) -> Iterator[Order]:
        """Make what has become due, up to MAX_PER_TICK."""
        due = min(self.schedule.due_by(now_ns), self._made + MAX_PER_TICK)
        while self._made < due:
            due_ns = self.schedule.due_at(self._made + 1)
            self._made += 1
            self._newest_ms = due_ns // NS_PER_MS
            yield Order(due_ns, self, self.make(self._made - 1, due_ns))
        self.schedule.forget(self._made)

    def counts(self, now_ns: int) -> dict[str, int]:
        """due, done and refused so far."""
        return {"due": self.schedule.due_by(now_ns), "done": self.done, "refused": self.refused}

    @property
    def newest(self) -> list[int]:
        """The number of the newest that was made, 1 for the first, and when it was due, epoch
        milliseconds."""
        return [self._made, self._newest_ms]
