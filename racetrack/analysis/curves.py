"""Cumulative counts per partition: read from `curves.csv`, or the recent ones of a running session;
their validity, rates, and the engine's updates."""

import importlib
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.analysis.raw import require_near
from racetrack.errors import RacetrackError, UnreadableFile
from racetrack.results.figures import Throughput
from racetrack.results.folder import shared_file

Floats = NDArray[np.float64]
# (curve, partition) → array of (at_ms, count), shape (rows, 2).
Rows = Mapping[tuple[str, int], NDArray[np.int64] | Floats]
FILE = "curves.csv"
HEADER = ["at_ms", "curve", "partition", "count"]
FIRST_LINE = 2  # of the rows
SAMPLED = ("due", "handed_over", "published")
NAMES = (*SAMPLED, "processed")
# Start offsets of the broker. Written when they change, so most runs have no such row.
DELETED = "deleted"
# Times may go back by less than this, because two threads write the file. That changes the slope in
# a window of 30 s by at most 0.1 % of real time (1.5 x step / window), a tenth of the threshold.
CLOCK_STEP_MS = 20.0
# The update interval may change with the load, so it is computed from recent updates only.
RECENT_MS = 30_000.0
# Rows at most this far apart belong to one update. Updates are further apart.
STEP_MS = 5.0
# After a gap of this length a view is stale, even if its usual update interval is longer.
LONG_GAP_MS = 10_000.0
# For a running session, only the counts of the last KEPT_MS are kept, so a lag above KEPT_MS is
# shown as KEPT_MS. Old rows are dropped at most once per TRIM_MS.
KEPT_MS, TRIM_MS = 30 * 60_000, 60_000
# The current rate is measured over this time, which is longer than the update interval of an engine
# that updates once a second.
RATE_OVER_MS = 2_000


class CurvesError(RacetrackError):
    """A run recorded no curves, or not all of them."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Cumulative events of one partition, in the order in which the rows were written.

    The arrays have equal length: `at_ms` in epoch milliseconds, `count` in events since the
    topic was created.
    """

    at_ms: NDArray[np.float64]
    count: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """The counts of a run: a `Curve` for each partition, in the order of `partitions`.

    A curve of `processed` is empty if the engine has counted nothing; those of `due`, `handed_over`
    and `published` are never empty. `deleted` is empty if nothing is known of deleted messages.
    """

    partitions: tuple[int, ...]
    due: tuple[Curve, ...]
    handed_over: tuple[Curve, ...]
    published: tuple[Curve, ...]
    processed: tuple[Curve, ...]
    deleted: tuple[Curve, ...] = ()


def read(folder: Path) -> Curves:
    """Return the curves of the run folder of an engine, without an incomplete last line. If several
    engines share the curves of generator and broker, these are read from the folder of the run.

    Raises:
        CurvesError: the file or a curve is missing.
        UnreadableFile: the file is damaged.
    """
    own, shared = folder / FILE, shared_file(folder, FILE)
    rows = {key: curve_rows for path in {own, shared} for key, curve_rows in _rows(path).items()}
    return _assemble(own, rows)


def import_reader() -> None:
    """Import the modules that `read` and the verdict import late. A run calls this before it
    measures, so that the imports take no CPU time during the measurement."""
    importlib.import_module("pyarrow.csv")
    importlib.import_module("scipy.special")


def _rows(path: Path) -> Rows:
    """Return the rows (at_ms, count) of each curve and partition."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CurvesError(
            f"{path} is missing: this run recorded no curves. Run it again."
        ) from error
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from error
    return _parse(path, content[: content.rfind(b"\n") + 1])


def _parse(path: Path, content: bytes) -> Rows:
    # pyarrow's reader needs the least CPU time. A running experiment reads its curves again for
    # each verdict.
    import pyarrow as pa
    from pyarrow import csv

    if not content:
        raise CurvesError(f"{path} is empty: this run recorded no curves. Run it again.")
    if content.partition(b"\n")[0] != ",".join(HEADER).encode():
        raise UnreadableFile(path, f"it does not start with {','.join(HEADER)!r}", 1)
    whole = pa.int64()
    types = {"at_ms": whole, "curve": pa.string(), "partition": whole, "count": whole}
    try:
        table = csv.read_csv(
            pa.py_buffer(content),
            csv.ReadOptions(use_threads=False),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        raise UnreadableFile(path, error) from error
    for column in table.columns:
        if column.null_count:
            line = column.is_null().to_pylist().index(True) + FIRST_LINE
            raise UnreadableFile(path, "a value is missing", line)
    times_ms = table["at_ms"].to_numpy()
    require_near(path, times_ms, range(FIRST_LINE, len(times_ms) + FIRST_LINE))
    names = table["curve"].combine_chunks().dictionary_encode()
    partitions = table["partition"].to_numpy()
    pairs = np.column_stack((table["at_ms"].to_numpy(), table["count"].to_numpy()))
    codes = names.indices.to_numpy()
    return {
        (name, int(partition)): pairs[(codes == code) & (partitions == partition)]
        for code, name in enumerate(names.dictionary.to_pylist())
        for partition in np.unique(partitions[codes == code])
    }


def _assemble(path: Path, rows: Rows) -> Curves:
    unknown = sorted({name for name, _ in rows} - {*NAMES, DELETED})
    if unknown:
        raise UnreadableFile(path, f"it has curves that this version can't read: {unknown}")
    partitions = tuple(sorted({partition for _, partition in rows}))
    missing = [f"{name}/{p}" for name in SAMPLED for p in partitions if (name, p) not in rows]
    if missing or not partitions:
        raise CurvesError(
            f"{path} lacks {', '.join(missing) or 'any row'}: lag needs the curves due, handed_over"
            " and published of every partition. The run ended too early; run it again."
        )

    def curve(name: str, partition: int) -> Curve:
        table = rows.get((name, partition), np.empty((0, 2))).astype(np.float64)
        return Curve(table[:, 0], table[:, 1])

    names = (*NAMES, DELETED)
    return Curves(partitions, *(tuple(curve(name, p) for p in partitions) for name in names))


@dataclass(frozen=True)
class ClockStep:
    """A clock that was set back: in a curve, a row at `from_ms` is followed by one at `to_ms`,
    which is earlier."""

    curve: str
    partition: int
    from_ms: float
    to_ms: float


@dataclass(frozen=True, eq=False)
class TrustedCurves(Curves):
    """Curves whose times never decrease. If a clock was set back, they end before that `step`."""

    step: ClockStep | None = None


def trusted(curves: Curves) -> TrustedCurves:
    """Return the curves up to where a clock was first set back.

    After a step, the times of due and processed counts are from different clocks, and a lag smaller
    than the step would appear as 0. So the rows after the step are dropped from all curves.
    """
    if isinstance(curves, TrustedCurves):
        return curves
    steps = [step for name in NAMES for step in _steps(name, curves)]
    first = min(steps, key=lambda step: step.to_ms, default=None)
    until_ms = first.to_ms if first else np.inf

    def cut(curve: Curve, only_grows: bool) -> Curve:
        end = int(np.append(_backwards(curve) + 1, len(curve.at_ms))[0])
        at_ms = np.maximum.accumulate(curve.at_ms[:end])
        end = int(np.searchsorted(at_ms, until_ms, "right"))
        # A sampled count falls if an event is refused later; undo that. An engine's count may
        # fall because the engine has lost its state, so keep that.
        count = np.maximum.accumulate(curve.count) if only_grows else curve.count
        return Curve(at_ms[:end], count[:end])

    def cuts(name: str) -> tuple[Curve, ...]:
        return tuple(cut(curve, name != "processed") for curve in getattr(curves, name))

    due, handed_over, published, processed, deleted = map(cuts, (*NAMES, DELETED))
    return TrustedCurves(
        curves.partitions, due, handed_over, published, processed, deleted, step=first
    )


def _backwards(curve: Curve) -> NDArray[np.intp]:
    """Return the indices of rows whose next row is earlier by more than CLOCK_STEP_MS."""
    return np.flatnonzero(curve.at_ms[1:] - curve.at_ms[:-1] < -CLOCK_STEP_MS)


def _steps(name: str, curves: Curves) -> list[ClockStep]:
    steps = []
    for partition, curve in zip(curves.partitions, getattr(curves, name), strict=True):
        for row in _backwards(curve):
            from_ms, to_ms = curve.at_ms[row : row + 2]
            steps.append(ClockStep(name, partition, float(from_ms), float(to_ms)))
    return steps


def recorded_until_ms(curves: Curves) -> float:
    """Return the time up to which all sampled curves have rows; -inf if a curve is empty."""
    sampled = (curve for name in SAMPLED for curve in getattr(curves, name))
    return float(min(c.at_ms[-1] if len(c.at_ms) else -np.inf for c in sampled))


def throughput(curves: Curves, start_ms: float, end_ms: float) -> Throughput:
    """Return the mean rates in the window. Counts at its ends are interpolated linearly."""
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves))
    ends = np.array([start_ms, end_ms])

    def per_s(parts: tuple[Curve, ...]) -> float:
        counts = [np.interp(ends, c.at_ms, c.count) for c in parts if len(c.at_ms)]
        grown = sum(float(count[1] - count[0]) for count in counts)
        return grown / (end_ms - start_ms) * 1000 if end_ms > start_ms else 0.0

    updates = update_times_ms(curves)
    silent = not np.any((updates >= start_ms) & (updates <= end_ms))
    return Throughput(
        offered_per_s=per_s(curves.due),
        handed_over_per_s=per_s(curves.handed_over),
        published_per_s=per_s(curves.published),
        processed_per_s=None if silent else per_s(curves.processed),
    )


def times_of(curve: Curve, numbers: Floats) -> Floats:
    """Return when the curve's count reached each of these numbers, interpolated linearly: -inf if
    that was before the first row, inf if it was after the last.

    The true count at the time of a sampled count k lies between k and k + 1. Adding half an event
    makes the error symmetric; it is at most half a sampling interval at a few events per second.
    """
    if not len(curve.at_ms):
        return np.full(numbers.shape, np.inf)
    known = np.interp(numbers, curve.count + 0.5, curve.at_ms, left=-np.inf, right=np.inf)
    return np.asarray(known, dtype=np.float64)


def counted(processed: Curve, at_ms: Floats, side: str) -> Floats:
    """Return the count at each of these times. It is the count of the last row at or before the
    time (strictly before it if `side` is "left"), and 0 before the first row."""
    rows = np.searchsorted(processed.at_ms, at_ms, "left" if side == "left" else "right")
    return np.concatenate([[0.0], processed.count])[rows]


def deleted_unread(curves: Curves) -> int:
    """Return the number of events that the broker deleted before the engine had counted them.

    A start offset above the engine's count is the sign. An engine may hold messages that the broker
    has deleted, so events that it has counted by the end of the recording are left out. While it
    still counts, the number is a lower bound.
    """
    curves = trusted(curves)
    if not any(len(curve.at_ms) for curve in curves.deleted):
        return 0
    pairs = zip(curves.deleted, curves.processed, curves.published, strict=True)
    quiet_ms = np.array([recorded_until_ms(curves) - LONG_GAP_MS, np.inf])
    return sum(_deleted_unread(*counts, quiet_ms=quiet_ms) for counts in pairs)


def _deleted_unread(deleted: Curve, processed: Curve, published: Curve, *, quiet_ms: Floats) -> int:
    """Return the same number for one partition. An engine has read all that is left if neither it
    nor the generator counted anything between the two times in `quiet_ms`."""
    at_ms = np.concatenate([deleted.at_ms, processed.at_ms])
    by_engine = counted(processed, at_ms, "right")
    passed = counted(deleted, at_ms, "right") - by_engine
    if len(processed.at_ms):  # a count of 0 is that of an engine that starts or was killed
        passed = passed[by_engine > 0]
    most = float(np.max(passed, initial=0.0))
    there, done = (counted(curve, quiet_ms, "right") for curve in (published, processed))
    missing = float(there[1] - done[1])
    is_quiet = there[0] == there[1] and done[0] == done[1]
    return max(0, round(missing if most and is_quiet else min(most, missing)))


@dataclass(frozen=True)
class UpdateGaps:
    """Gaps between the engine's updates before, in and after a window.

    `interval_ms` is the typical update interval before the window, None without two updates.
    `longest_ms` is the longest gap that begins at or after the last update before the window and
    ends by the window's end. `next_update_s` is the time from the window's end to the next update,
    None if there was none. `recorded_s` is the length of the recording after the window.
    """

    interval_ms: float | None
    longest_ms: float
    next_update_s: float | None
    recorded_s: float

    @property
    def updates_ended(self) -> bool:
        """True if no update followed the window, although the recording continued for
        LONG_GAP_MS."""
        return self.next_update_s is None and self.recorded_s >= LONG_GAP_MS / 1000


def update_times_ms(curves: Curves) -> NDArray[np.float64]:
    """Return the time at which each update of the engine was complete, in order."""
    return update_steps(curves)[1]


@lru_cache(maxsize=8)
def update_steps(curves: Curves) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times at which each update of the engine began and was complete.

    Some engines give each partition its own timestamp. Rows within STEP_MS of each other belong to
    the same update, except that a second row of a partition begins a new update. The results for
    the last curves, of an engine's count and of its views, are cached, because verdicts need them
    several times.
    """
    at_ms = np.concatenate([curve.at_ms for curve in curves.processed])
    numbers = [np.full(len(c.at_ms), n) for n, c in enumerate(curves.processed)]
    order = np.argsort(at_ms, kind="stable")
    began: list[float] = []
    complete: list[float] = []
    seen: set[int] = set()
    for at, partition in zip(
        at_ms[order].tolist(), np.concatenate(numbers)[order].tolist(), strict=True
    ):
        gap_ms = at - complete[-1] if complete else np.inf
        if gap_ms > STEP_MS or (gap_ms > 0 and partition in seen):
            began.append(at)
            complete.append(at)
            seen = set()
        complete[-1] = at
        seen.add(partition)
    return np.array(began), np.array(complete)


def update_gaps(
    curves: Curves, start_ms: float, end_ms: float, recorded_until_ms: float
) -> UpdateGaps:
    """Return the gaps between updates around a window (epoch milliseconds)."""
    updates = update_times_ms(curves)
    after = updates[updates > end_ms]
    first = max(0, int(np.searchsorted(updates, start_ms)) - 1)
    until_end = np.append(updates[first : len(updates) - len(after)], end_ms)
    return UpdateGaps(
        interval_ms=update_interval_ms(updates, start_ms),
        longest_ms=float(np.max(np.diff(until_end), initial=0.0)),
        next_update_s=float(after[0] - end_ms) / 1000 if len(after) else None,
        recorded_s=max(0.0, recorded_until_ms - end_ms) / 1000,
    )


def update_interval_ms(updates: NDArray[np.float64], until_ms: float) -> float | None:
    """Return the typical gap between updates in the RECENT_MS before `until_ms`, in milliseconds:
    the time-weighted median, so half of the time lies in gaps of at least this length. None if
    there is no gap."""
    before = updates[updates <= until_ms]
    ends, gaps = before[1:], np.diff(before)
    recent = np.sort(gaps[ends > until_ms - RECENT_MS])
    if not len(recent):
        return None
    reached = np.cumsum(recent)
    return float(recent[np.searchsorted(reached, reached[-1] / 2)])


class RecentCurve:
    """Recent counts of one curve in one partition, in the order of time, in bounded memory."""

    def __init__(self) -> None:
        self.at_ms, self.count = array("q"), array("q")

    def add(self, at_ms: int, count: int) -> None:
        """Add a row and drop rows that are older than KEPT_MS."""
        if self.at_ms and at_ms < self.at_ms[-1]:
            # Two threads write, so rows may be out of order by a few milliseconds.
            at_ms = self.at_ms[-1]
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
        """Return the time at which the count reached a number, interpolated linearly: the first
        known time if the number was reached earlier; None if it has not been reached."""
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
        self._shared: dict[tuple[str, int], RecentCurve] = defaultdict(RecentCurve)
        self._processed: dict[tuple[str, int], RecentCurve] = defaultdict(RecentCurve)
        # Engines and partitions of which the broker has deleted events that were not counted.
        self._deleted_unread: set[tuple[str, int]] = set()

    def add(self, engine: str, at_ms: int, curve: str, counts: Iterable[tuple[int, int]]) -> None:
        """Add a row for each (partition, count). `engine` is only used for the curve `processed`;
        the other curves belong to all engines."""
        with self._lock:
            for partition, count in counts:
                if curve == "processed":
                    self._processed[engine, partition].add(at_ms, count)
                else:
                    self._shared[curve, partition].add(at_ms, count)
                if (DELETED, partition) in self._shared:
                    self._note_deleted(partition)

    def _note_deleted(self, partition: int) -> None:
        """Note which engines have not counted what the broker has deleted. An engine that later
        counts everything had read it before."""
        deleted, published = (
            self._shared.get((name, partition)) for name in (DELETED, "published")
        )
        for engine in {name for name, _ in self._processed}:
            count = self._counted(engine, partition)
            if deleted and deleted.count[-1] > count:
                self._deleted_unread.add((engine, partition))
            elif published and count >= published.count[-1]:
                self._deleted_unread.discard((engine, partition))

    def has_deleted_unread(self, engine: str) -> bool:
        """Return whether the broker has deleted events that the engine had not counted."""
        with self._lock:
            return any(name == engine for name, _ in self._deleted_unread)

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
            rows = [curve for (name, _), curve in curves.items() if name == key]
            if not rows:
                return None
            end_ms = max(curve.at_ms[-1] for curve in rows)
            grown = sum(curve.at(end_ms) - curve.at(end_ms - over_ms) for curve in rows)
        return max(0.0, grown * 1000 / over_ms)

    def backlog(self, engine: str) -> float | None:
        """Return the number of events that are due but not counted; None without rows, or if the
        broker has deleted some of them."""
        if self.has_deleted_unread(engine):
            return None
        with self._lock:
            due = {part: curve for (name, part), curve in self._shared.items() if name == "due"}
            if not due:
                return None
            return float(
                sum(
                    max(0, curve.count[-1] - self._counted(engine, part))
                    for part, curve in due.items()
                )
            )

    def lag_ms(self, engine: str, now_ms: float) -> float | None:
        """Return the age of the oldest event that is due but not counted, in milliseconds: 0 if
        there is none, None without rows or if the broker has deleted some of them."""
        if self.has_deleted_unread(engine):
            return None
        with self._lock:
            due = {part: curve for (name, part), curve in self._shared.items() if name == "due"}
            if not due:
                return None
            oldest = [curve.time_of(self._counted(engine, part) + 1) for part, curve in due.items()]
        return max(0.0, *(now_ms - at_ms for at_ms in oldest if at_ms is not None), 0.0)

    def _counted(self, engine: str, partition: int) -> int:
        rows = self._processed.get((engine, partition))
        return rows.count[-1] if rows else 0

    def curves(self, engine: str, from_ms: float = 0.0) -> Curves | None:
        """Return the curves of an engine from a time on; None if a sampled curve has no row."""
        with self._lock:
            partitions = tuple(sorted({part for _, part in self._shared}))
            deleted = tuple(
                self._shared.get((DELETED, part), RecentCurve()).since(from_ms)
                for part in partitions
            )
            if not partitions or any(
                (name, part) not in self._shared for name in SAMPLED for part in partitions
            ):
                return None
            sampled = [
                tuple(self._shared[name, part].since(from_ms) for part in partitions)
                for name in SAMPLED
            ]
            processed = tuple(
                self._processed.get((engine, part), RecentCurve()).since(from_ms)
                for part in partitions
            )
        due, handed_over, published = sampled
        return Curves(partitions, due, handed_over, published, processed, deleted)
