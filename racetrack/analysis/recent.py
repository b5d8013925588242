"""Recent counts of a running session, in bounded memory: current rates and lag, and the curves of a
segment for its verdict."""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from racetrack.analysis.curves import SAMPLED, Curve, Curves

KEPT_MS = 30 * 60_000  # a lag above this is shown as this
TRIM_MS = 60_000  # rows are dropped at most once per this time
RATE_OVER_MS = 2_000  # longer than the update interval of an engine that updates once a second


class Counts:
    """Cumulative counts of one curve in one partition, in the order of time."""

    def __init__(self) -> None:
        self.at_ms, self.count = array("q"), array("q")

    def add(self, at_ms: int, count: int) -> None:
        """Add a row and drop rows that are older than KEPT_MS."""
        if self.at_ms and at_ms < self.at_ms[-1]:
            at_ms = self.at_ms[-1]  # two threads write; their rows are a few milliseconds apart
        self.at_ms.append(at_ms)
        self.count.append(count)
        if at_ms - self.at_ms[0] > KEPT_MS + TRIM_MS:
            old = bisect_left(self.at_ms, at_ms - KEPT_MS)
            del self.at_ms[:old], self.count[:old]

    def at(self, at_ms: float) -> float:
        """Return the count at a time, interpolated linearly."""
        row = bisect_right(self.at_ms, at_ms)
        if row == 0 or row == len(self.at_ms):
            return float(self.count[row - 1 if row else 0])
        before, after = self.at_ms[row - 1], self.at_ms[row]
        share = (at_ms - before) / (after - before) if after > before else 1.0
        return self.count[row - 1] + share * (self.count[row] - self.count[row - 1])

    def time_of(self, number: float) -> float | None:
        """Return when the count reached a number, interpolated linearly: the first known time if it
        was before that; None if it has not."""
        row = bisect_left(self.count, number)
        if row == len(self.count):
            return None
        if row == 0:
            return float(self.at_ms[0])
        before, after = self.count[row - 1], self.count[row]
        share = (number - before) / (after - before)
        return self.at_ms[row - 1] + share * (self.at_ms[row] - self.at_ms[row - 1])

    def since(self, from_ms: float) -> Curve:
        """Return the rows from a time on, with the last row before it."""
        first = max(0, bisect_left(self.at_ms, from_ms) - 1)
        at_ms, count = self.at_ms[first:], self.count[first:]
        return Curve(
            np.array(at_ms, dtype=np.float64),
            np.array(count, dtype=np.float64),
        )


class RecentCurves:
    """Recent rows of `curves.csv` of all engines of a session. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, int], Counts] = defaultdict(Counts)
        self._processed: dict[tuple[str, int], Counts] = defaultdict(Counts)

    def add(self, engine: str, at_ms: int, curve: str, counts: Iterable[tuple[int, int]]) -> None:
        """Add a row for each (partition, count). `engine` is only used for `processed`."""
        with self._lock:
            for partition, count in counts:
                if curve == "processed":
                    self._processed[engine, partition].add(at_ms, count)
                else:
                    self._shared[curve, partition].add(at_ms, count)

    def forget(self, engine: str) -> None:
        """Drop the counts of an engine that was killed and starts from nothing."""
        with self._lock:
            for key in [key for key in self._processed if key[0] == engine]:
                del self._processed[key]

    def rate_per_s(self, curve: str, engine: str = "", over_ms: int = RATE_OVER_MS) -> float | None:
        """Return the current rate of a curve, summed over the partitions; None without rows."""
        with self._lock:
            key, curves = (
                (engine, self._processed) if curve == "processed" else (curve, self._shared)
            )
            rows = [of for (name, _), of in curves.items() if name == key]
            if not rows:
                return None
            end_ms = max(of.at_ms[-1] for of in rows)
            grown = sum(of.at(end_ms) - of.at(end_ms - over_ms) for of in rows)
        return max(0.0, grown * 1000 / over_ms)

    def backlog(self, engine: str) -> float | None:
        """Return the number of events that are due but not counted; None without rows."""
        with self._lock:
            due = {part: of for (name, part), of in self._shared.items() if name == "due"}
            if not due:
                return None
            return float(
                sum(max(0, of.count[-1] - self._counted(engine, part)) for part, of in due.items())
            )

    def lag_ms(self, engine: str, now_ms: float) -> float | None:
        """Return the age of the oldest event that is due but not counted, in milliseconds: 0 if
        there is none, None without rows."""
        with self._lock:
            due = {part: of for (name, part), of in self._shared.items() if name == "due"}
            if not due:
                return None
            oldest = [of.time_of(self._counted(engine, part) + 1) for part, of in due.items()]
        return max(0.0, *(now_ms - at_ms for at_ms in oldest if at_ms is not None), 0.0)

    def _counted(self, engine: str, partition: int) -> int:
        rows = self._processed.get((engine, partition))
        return rows.count[-1] if rows else 0

    def curves(self, engine: str, from_ms: float = 0.0) -> Curves | None:
        """Return the curves of an engine from a time on; None if a sampled curve has no row."""
        with self._lock:
            partitions = tuple(sorted({part for _, part in self._shared}))
            if not partitions or any(
                (name, part) not in self._shared for name in SAMPLED for part in partitions
            ):
                return None
            sampled = [
                tuple(self._shared[name, part].since(from_ms) for part in partitions)
                for name in SAMPLED
            ]
            processed = tuple(
                self._processed.get((engine, part), Counts()).since(from_ms) for part in partitions
            )
        due, handed_over, published = sampled
        return Curves(partitions, due, handed_over, published, processed)
