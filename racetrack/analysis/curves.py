"""Cumulative counts per partition (`curves.csv`): reading, validity, rates, and engine updates."""

import csv
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.errors import RacetrackError
from racetrack.results.figures import Throughput

Floats = NDArray[np.float64]
FILE = "curves.csv"
HEADER = ["at_ms", "curve", "partition", "count"]
SAMPLED = ("due", "handed_over", "published")
NAMES = (*SAMPLED, "processed")
# Going back by less is two writers of one log out of order, not a clock that was set. It moves the
# slope over 30 s by at most 0.1 % of real time (1.5 x step / window), a tenth of the threshold.
CLOCK_STEP_MS = 20.0
# An engine's rhythm may change with the load, so it is taken from what was just before.
RECENT_MS = 30_000.0
# An update's rows come within a few milliseconds; no engine has a cycle as short as this.
STEP_MS = 5.0
# After so much silence a view is stale whatever its rhythm.
LONG_GAP_MS = 10_000.0


class CurvesError(RacetrackError):
    """`curves.csv` is not what this version can read."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Cumulative pageviews of one partition, rows in the order in which they were written.

    `at_ms` are epoch milliseconds, `count` pageviews since the topic was made; same length.
    """

    at_ms: NDArray[np.float64]
    count: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """The four curves; each has one `Curve` a partition, in the order of `partitions`.

    A `processed` curve is empty where the engine has counted nothing; the others never are.
    """

    partitions: tuple[int, ...]
    due: tuple[Curve, ...]
    handed_over: tuple[Curve, ...]
    published: tuple[Curve, ...]
    processed: tuple[Curve, ...]


def read(folder: Path) -> Curves:
    """The curves of a run folder.

    A last line without its end (the run was killed) is left out.

    Raises:
        CurvesError: there is no such file, a line can't be read, or a curve is missing.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CurvesError(
            f"{path} is not there: this run recorded no curves. Run it anew."
        ) from error
    return _assemble(path, _rows(path, text[: text.rfind("\n") + 1]))


def _rows(path: Path, text: str) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """The rows (at_ms, count) of each curve and partition."""
    lines = csv.reader(text.splitlines())
    if next(lines, None) != HEADER:
        raise CurvesError(f"{path} does not begin with {','.join(HEADER)!r}: not a file of curves.")
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        try:
            at_ms, name, partition, count = line
            found[name, int(partition)].append((int(at_ms), int(count)))
        except ValueError as error:
            raise CurvesError(
                f"{path}, line {lines.line_num}: {','.join(line)!r} is not"
                f" {','.join(HEADER)}. Take the file from the run anew."
            ) from error
    return found


def _assemble(path: Path, rows: dict[tuple[str, int], list[tuple[int, int]]]) -> Curves:
    strange = sorted({name for name, _ in rows} - set(NAMES))
    if strange:
        raise CurvesError(f"{path} has curves that this version does not know: {strange}.")
    partitions = tuple(sorted({partition for _, partition in rows}))
    missing = [f"{name}/{p}" for name in SAMPLED for p in partitions if (name, p) not in rows]
    if missing or not partitions:
        raise CurvesError(
            f"{path} lacks {', '.join(missing) or 'any row'}: lag needs what was due, handed over"
            " and published for every partition. The run broke off too early; run it anew."
        )

    def curve(name: str, partition: int) -> Curve:
        table = np.array(rows.get((name, partition), []), dtype=np.float64).reshape(-1, 2)
        return Curve(table[:, 0], table[:, 1])

    return Curves(partitions, *(tuple(curve(name, p) for p in partitions) for name in NAMES))


@dataclass(frozen=True)
class ClockStep:
    """A clock that was set back: a curve's rows went from `from_ms` to the earlier `to_ms`."""

    curve: str
    partition: int
    from_ms: float
    to_ms: float


@dataclass(frozen=True, eq=False)
class TrustedCurves(Curves):
    """Curves whose times never decrease, cut where `step` set a clock back."""

    step: ClockStep | None


def trusted(curves: Curves) -> TrustedCurves:
    """The curves up to where a clock was first set back.

    After a step what was due and what was counted are on two clocks, and a lag smaller than the
    step would read as none at all. So nothing after it is used, in any curve.
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
        # A pageview taken back (refused after all) makes a dip; what an engine counts may fall.
        count = np.maximum.accumulate(curve.count) if only_grows else curve.count
        return Curve(at_ms[:end], count[:end])

    def cuts(name: str) -> tuple[Curve, ...]:
        return tuple(cut(curve, name in SAMPLED) for curve in getattr(curves, name))

    due, handed_over, published, processed = map(cuts, NAMES)
    return TrustedCurves(curves.partitions, due, handed_over, published, processed, first)


def _backwards(curve: Curve) -> NDArray[np.intp]:
    """The rows after which time goes back."""
    return np.flatnonzero(curve.at_ms[1:] - curve.at_ms[:-1] < -CLOCK_STEP_MS)


def _steps(name: str, curves: Curves) -> list[ClockStep]:
    found = []
    for partition, curve in zip(curves.partitions, getattr(curves, name), strict=True):
        for row in _backwards(curve):
            from_ms, to_ms = curve.at_ms[row : row + 2]
            found.append(ClockStep(name, partition, float(from_ms), float(to_ms)))
    return found


def recorded_until_ms(curves: Curves) -> float:
    """Up to when all sampled curves of all partitions are known; -inf if one has no row."""
    sampled = (curve for name in SAMPLED for curve in getattr(curves, name))
    return float(min(c.at_ms[-1] if len(c.at_ms) else -np.inf for c in sampled))


def throughput(curves: Curves, start_ms: float, end_ms: float) -> Throughput:
    """Rates over the window, from each curve's count at both ends, linear between its rows."""
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves))
    ends = np.array([start_ms, end_ms])

    def per_s(parts: tuple[Curve, ...]) -> float:
        counts = [np.interp(ends, c.at_ms, c.count) for c in parts if len(c.at_ms)]
        grown = sum(float(count[1] - count[0]) for count in counts)
        return grown / (end_ms - start_ms) * 1000 if end_ms > start_ms else 0.0

    told = update_times_ms(curves)
    silent = not np.any((told >= start_ms) & (told <= end_ms))
    return Throughput(
        offered_per_s=per_s(curves.due),
        handed_over_per_s=per_s(curves.handed_over),
        published_per_s=per_s(curves.published),
        processed_per_s=None if silent else per_s(curves.processed),
    )


def when(curve: Curve) -> Callable[[Floats], Floats]:
    """When number n (1-based) came: linear between samples; -inf before the record, inf after.

    A sample of count k means "k to k + 1": half a pageview is added, so that the error (up to half
    a sampling interval at a few pageviews per second) has no sign.
    """

    def at(number: Floats) -> Floats:
        if not len(curve.at_ms):
            return np.full(number.shape, np.inf)
        known = np.interp(number, curve.count + 0.5, curve.at_ms, left=-np.inf, right=np.inf)
        return np.asarray(known, dtype=np.float64)

    return at


def counted(processed: Curve, at_ms: Floats, side: str) -> Floats:
    """How many the engine had counted at these times: the last row's count, 0 before the first."""
    rows = np.searchsorted(processed.at_ms, at_ms, "left" if side == "left" else "right")
    return np.concatenate([[0.0], processed.count])[rows]


@dataclass(frozen=True)
class UpdateGaps:
    """What is known around a window.

    `interval_ms` is the usual time between two updates before it, None if there were no two.
    `longest_ms` is the longest time without one up to the window's end, from the last one before
    the window on. `next_update_s` is how long after the window's end the next one came, None if
    none did. `recorded_s` is how long the recording went on after it.
    """

    interval_ms: float | None
    longest_ms: float
    next_update_s: float | None
    recorded_s: float

    @property
    def updates_ended(self) -> bool:
        """Whether it told of nothing any more though it was given time."""
        return self.next_update_s is None and self.recorded_s >= LONG_GAP_MS / 1000


def update_times_ms(curves: Curves) -> NDArray[np.float64]:
    """When each update of the engine was there whole, in order."""
    return update_steps(curves)[1]


@lru_cache(maxsize=1)
def update_steps(curves: Curves) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When each update of the engine began, and when it was there whole.

    Some engines tell of each partition with a time of its own. Rows that follow each other within
    STEP_MS belong to one update, unless a partition comes again: then that is the next one.
    A verdict asks for them several times over, so those of the last curves are kept.
    """
    at_ms = np.concatenate([curve.at_ms for curve in curves.processed])
    numbers = [np.full(len(c.at_ms), n) for n, c in enumerate(curves.processed)]
    order = np.argsort(at_ms, kind="stable")
    begun: list[float] = []
    whole: list[float] = []
    seen: set[int] = set()
    for at, partition in zip(
        at_ms[order].tolist(), np.concatenate(numbers)[order].tolist(), strict=True
    ):
        gap_ms = at - whole[-1] if whole else np.inf
        if gap_ms > STEP_MS or (gap_ms > 0 and partition in seen):
            begun.append(at)
            whole.append(at)
            seen = set()
        whole[-1] = at
        seen.add(partition)
    return np.array(begun), np.array(whole)


def update_gaps(
    curves: Curves, start_ms: float, end_ms: float, recorded_until_ms: float
) -> UpdateGaps:
    """What the updates before and after a window say."""
    updates = update_times_ms(curves)
    after = updates[updates > end_ms]
    first = max(0, int(np.searchsorted(updates, start_ms)) - 1)
    until_end = np.append(updates[first : len(updates) - len(after)], end_ms)
    return UpdateGaps(
        update_interval_ms(updates, start_ms),
        float(np.max(np.diff(until_end), initial=0.0)),
        float(after[0] - end_ms) / 1000 if len(after) else None,
        max(0.0, recorded_until_ms - end_ms) / 1000,
    )


def update_interval_ms(updates: NDArray[np.float64], until_ms: float) -> float | None:
    """The median over time of the gaps between updates: half of the time was spent in gaps of at
    least this length. None without a gap."""
    before = updates[updates <= until_ms]
    ends, gaps = before[1:], np.diff(before)
    recent = np.sort(gaps[ends > until_ms - RECENT_MS])
    if not len(recent):
        return None
    reached = np.cumsum(recent)
    return float(recent[np.searchsorted(reached, reached[-1] / 2)])
