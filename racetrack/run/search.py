"""How the search for an engine's limit goes: what is run next, and when it ends. No I/O.

Runs are asked of an object, so that the search can be held against engines that are made up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from racetrack.analysis import capacity
from racetrack.analysis.capacity import Estimate, Work

# Parts of the capacity that are tried, from the top: 0.95, 0.90, … 0.05.
SHARES = tuple(round(0.95 - 0.05 * step, 2) for step in range(19))
# While none has held, strides grow: 0.95, 0.90, 0.80, 0.60, 0.20, 0.05.
DESCENT = (0, 1, 3, 7, 15, 18)
# What is sustainable: this quantile of the lag stays within a bound, which is no less than so many
# update cycles.
BOUNDS_MS = (2_000.0, 5_000.0)
QUANTILE = 0.99
CYCLES = 2


def widened_ms(bound_ms: float, cycle_ms: float) -> float:
    """The bound for an engine that tells of an update once in a cycle."""
    return max(bound_ms, CYCLES * cycle_ms)


@dataclass(frozen=True)
class Held:
    """A fresh run at a rate: the p99 of its lag, infinite if it was broken off since no bound could
    hold any more, its usual time between two updates, and whether the rate was truly offered."""

    lag_p99_ms: float
    cycle_ms: float
    is_offered: bool = True

    def is_within(self, bound_ms: float) -> bool:
        """Whether the lag stayed within a bound."""
        return self.is_offered and self.lag_p99_ms <= widened_ms(bound_ms, self.cycle_ms)


class Runs(Protocol):
    """What the search asks for."""

    def overload(self) -> Work:
        """A fresh run with always more to do."""

    def hold(self, pageviews_per_s: int) -> Held:
        """A fresh run at a rate."""

    def has_time(self) -> bool:
        """Whether one more run at a rate can be made."""


@dataclass(frozen=True)
class Sustained:
    """The highest rate seen to stay within a bound and the lowest above it seen not to (pageviews
    per second), None where there is none; also where the next rate could not be offered."""

    bound_ms: float
    held: int | None
    failed: int | None


@dataclass(frozen=True)
class Found:
    """What a search has found; `is_whole` if no more runs are wanted."""

    capacity: Estimate
    sustained: tuple[Sustained, ...]
    is_whole: bool


def find(runs: Runs, sessions: int, bounds_ms: Sequence[float] = BOUNDS_MS) -> Found | None:
    """Capacity from overloaded sessions, then the sustainable rate at each bound; None if the
    engine could not be kept busy, so that its capacity is not known.

    A run at a rate tells of all bounds. The widest bound is narrowed first.
    """
    works: list[Work] = []
    for _ in range(sessions):
        works.append(runs.overload())
        if not works[-1].is_capacity:
            return None
    found = capacity.estimate(works)
    tried: dict[int, Held] = {}

    def rate_of(step: int) -> int:
        return max(1, round(found.per_s * SHARES[step]))

    wanted = _next(tried, bounds_ms)
    while wanted is not None and runs.has_time():
        tried[wanted] = runs.hold(rate_of(wanted))
        wanted = _next(tried, bounds_ms)
    sustained = tuple(_sustained(tried, bound_ms, rate_of) for bound_ms in bounds_ms)
    return Found(found, sustained, is_whole=wanted is None)


def _next(tried: Mapping[int, Held], bounds_ms: Sequence[float]) -> int | None:
    """The step to try next; None if every bound's place is known as near as there are steps."""
    for bound_ms in sorted(bounds_ms, reverse=True):
        failed, held = _bracket(tried, bound_ms)
        if held is None:
            further = [step for step in DESCENT if failed is None or step > failed]
            if further:
                return further[0]
        elif failed is not None and held - failed > 1:
            return (failed + held) // 2
    return None


def _bracket(tried: Mapping[int, Held], bound_ms: float) -> tuple[int | None, int | None]:
    """The steps of the lowest rate that failed above the highest that held, and of that one."""
    held = min((step for step, run in tried.items() if run.is_within(bound_ms)), default=None)
    failed = [step for step, run in tried.items() if not run.is_within(bound_ms)]
    above = [step for step in failed if held is None or step < held]
    return max(above, default=None), held


def _sustained(
    tried: Mapping[int, Held], bound_ms: float, rate_of: Callable[[int], int]
) -> Sustained:
    failed, held = _bracket(tried, bound_ms)
    return Sustained(
        bound_ms,
        None if held is None else rate_of(held),
        rate_of(failed) if failed is not None and tried[failed].is_offered else None,
    )
