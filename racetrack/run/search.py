"""How the search for an engine's limit goes: what is tried next, and when it ends. No I/O.

Runs are asked of an object, so that the search can be held against engines that are made up.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from racetrack.analysis import capacity
from racetrack.analysis.capacity import Estimate, Work
from racetrack.errors import RacetrackError
from racetrack.limit_record import widened_ms

# Parts of the first run's capacity that are tried, from the top: 0.95, 0.90, … 0.05.
SHARES = tuple(round(0.95 - 0.05 * step, 2) for step in range(19))
# While none has held, strides grow: 0.95, 0.90, 0.80, 0.60, 0.20, 0.05.
DESCENT = (0, 1, 3, 7, 15, 18)
# What is sustainable: this quantile of the lag stays within a bound.
BOUNDS_MS = (2_000.0, 5_000.0)
QUANTILE = 0.99
RUNS = 2


@dataclass(frozen=True)
class Held:
    """What came of a rate: the p99 of the lag, infinite if it was broken off since the bound it
    was tried for could not hold any more, the usual time between two updates when there is little
    to do, and whether the rate was truly offered."""

    lag_p99_ms: float
    cycle_ms: float
    is_offered: bool = True

    def is_within(self, bound_ms: float) -> bool:
        """Whether the lag stayed within a bound."""
        return self.is_offered and self.lag_p99_ms <= widened_ms(bound_ms, self.cycle_ms)


class FreshRun(Protocol):
    """One run of the engine, begun afresh, and warm."""

    def work(self) -> Work:
        """What it works when there is always more to do."""

    def hold(self, per_s: int, bound_ms: float) -> Held:
        """A rate, begun without a backlog, and watched for as long as this bound may still hold."""


class Runs(Protocol):
    """What the search asks for."""

    def fresh(self) -> AbstractContextManager[FreshRun]:
        """A run that ends with its context."""

    def has_time_to_hold(self) -> bool:
        """Whether one more rate can be watched to its end, and the engine's work be measured."""


@dataclass(frozen=True)
class Sustained:
    """The highest rate that held within a bound, and the lowest above it that did not (per
    second), None where there is none; also where the next rate could not be offered."""

    bound_ms: float
    held: int | None
    failed: int | None


@dataclass(frozen=True)
class Found:
    """What a search has found; `is_whole` if nothing more is wanted. `failed` is why the second run
    ended early, so that the capacity is that of the first."""

    capacity: Estimate
    sustained: tuple[Sustained, ...]
    is_whole: bool
    failed: RacetrackError | None = None


def find(runs: Runs, bounds_ms: Sequence[float] = BOUNDS_MS) -> Found | None:
    """Two fresh runs. The first tells what the engine works; the second is to hold parts of that,
    and then tells what it works too: so rates are tried before it has had so much to do. If the
    second fails, what is known by then stands: an engine that keeps all that it gets runs out of
    memory there. None if the engine could not be kept busy, so that its capacity is not known.

    Raises:
        RacetrackError: the first run failed.
    """
    with runs.fresh() as run:
        first = run.work()
    if not first.is_capacity:
        return None

    def rate_of(step: int) -> int:
        return max(1, round(first.per_s * SHARES[step]))

    tries, works, failed = _Tries(bounds_ms), [first], None
    try:
        with runs.fresh() as run:
            while (wanted := tries.wanted()) and runs.has_time_to_hold():
                tries.made[wanted.step] = run.hold(rate_of(wanted.step), wanted.bound_ms)
            works.append(run.work())
    except RacetrackError as error:
        failed = error
    if not works[-1].is_capacity:
        return None
    return Found(
        capacity.estimate(works),
        tuple(tries.sustained(bound_ms, rate_of) for bound_ms in bounds_ms),
        is_whole=not failed and not tries.wanted(),
        failed=failed,
    )


@dataclass(frozen=True)
class _Wanted:
    """A step that is to be tried, for a bound."""

    step: int
    bound_ms: float


class _Tries:
    """What came of the steps that were tried. A rate tells of all bounds; the widest is narrowed
    first, so that what is tried for one bound is below what holds within any wider one."""

    def __init__(self, bounds_ms: Sequence[float]) -> None:
        self._bounds_ms = sorted(bounds_ms, reverse=True)
        self.made: dict[int, Held] = {}

    def wanted(self) -> _Wanted | None:
        """None if every bound's place is known as near as there are steps."""
        for bound_ms in self._bounds_ms:
            failed, held = self._bracket(bound_ms)
            if held is None:
                further = [step for step in DESCENT if failed is None or step > failed]
                if further:
                    return _Wanted(further[0], bound_ms)
            elif failed is not None and held - failed > 1:
                return _Wanted((failed + held) // 2, bound_ms)
        return None

    def sustained(self, bound_ms: float, rate_of: Callable[[int], int]) -> Sustained:
        """What is known of a bound."""
        failed, held = self._bracket(bound_ms)
        return Sustained(
            bound_ms,
            None if held is None else rate_of(held),
            rate_of(failed) if failed is not None and self.made[failed].is_offered else None,
        )

    def _bracket(self, bound_ms: float) -> tuple[int | None, int | None]:
        """The steps of the lowest rate that failed above the highest that held, and of that one."""
        within = [step for step, run in self.made.items() if run.is_within(bound_ms)]
        held = min(within, default=None)
        failed = [step for step, run in self.made.items() if not run.is_within(bound_ms)]
        above = [step for step in failed if held is None or step < held]
        return max(above, default=None), held
