"""How the limit is searched for: which rate to try next, and when to stop. No I/O.

Whether a rate is kept up with is asked of functions, so that the search can be tried on engines
that are made up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from racetrack.analysis.verdict import Kind

Observe = Callable[[int], Kind]
NOT_THE_ENGINE = (Kind.GENERATOR_BOUND, Kind.BROKER_BOUND)
CLIMB_FACTOR = 2.0
MOST_UNDECIDED = 2  # of one rate; the next is given a longer window
BLUR_STEP = 1.5
LONGEST_STRIDE = 1.5
MAX_SHIFTS = 25


@dataclass(frozen=True)
class Bracket:
    """The highest rate seen to be kept up with, the lowest seen to fall behind (pageviews/s); None
    where none was. `stopped_by` says what else ended the search."""

    keeps_up: int | None
    falls_behind: int | None
    stopped_by: str | None = None

    def is_within(self, tolerance: float) -> bool:
        """Whether the two rates are no further apart than the tolerance."""
        if self.keeps_up is None or self.falls_behind is None:
            return False
        return self.falls_behind <= self.keeps_up * (1 + tolerance) + 1


def climb(observe: Observe, start: int, tolerance: float) -> Bracket:
    """Bracket the limit: double from `start` until the engine falls behind, halve until it keeps
    up, then take the geometric mean until both are within `tolerance`.

    An undecided rate is taken for one that it falls behind at: the search becomes careful, and the
    confirmation decides.
    """
    bracket, rate = Bracket(None, None), start
    while True:
        kind = observe(rate)
        if kind in NOT_THE_ENGINE:
            return Bracket(bracket.keeps_up, bracket.falls_behind, f"{kind} at {rate:,}/s")
        if kind is Kind.KEPT_UP:
            bracket = Bracket(rate, bracket.falls_behind)
        else:
            bracket = Bracket(bracket.keeps_up, rate)
        if bracket.is_within(tolerance):
            return bracket
        if bracket.falls_behind is not None and bracket.falls_behind <= 1:
            return Bracket(None, 1, "it does not keep up with one pageview per second")
        rate = _next_rate(bracket)


def confirm(run: Observe, bracket: Bracket, tolerance: float) -> Bracket:
    """Confirm a bracket with fresh runs: at the lower rate 3 of 3 must keep up, at the upper 2 of 3
    must fall behind; else they are moved, and tried anew: further each time, since the climb may
    have been far off (it saw an engine that was still warming up), and then halved again.

    Near its limit an engine's lag may swing so much that no run decides. Then the rates move apart,
    until both are confirmed, and `stopped_by` says that what is between them could not be told.
    """
    if bracket.keeps_up is None or bracket.falls_behind is None:
        return bracket
    try:
        return _confirmed(run, bracket.keeps_up, bracket.falls_behind, tolerance)
    except _NotTheEngine as why:
        return Bracket(None, None, str(why))


class _NotTheEngine(Exception):
    """Something else than the engine was the limit."""


def _confirmed(run: Observe, low: int, high: int, tolerance: float) -> Bracket:
    high = max(high, low + 1)
    low_holds = high_holds = rising = blurred = False
    stride = 1 + tolerance
    for _ in range(MAX_SHIFTS):
        if not low_holds and not rising:
            found = _times(run, low, Kind.KEPT_UP, wanted=3, spare=0)
            low_holds = found is Kind.KEPT_UP
            if found is Kind.UNDECIDED:
                low, blurred = math.floor(low / BLUR_STEP), True
            elif not low_holds:
                low, high, high_holds = math.floor(low / stride), low, False
                stride = min(stride**2, LONGEST_STRIDE)
        elif not high_holds:
            found = _times(run, high, Kind.FELL_BEHIND, wanted=2, spare=1)
            high_holds = found is Kind.FELL_BEHIND
            rising = found is Kind.KEPT_UP
            if found is Kind.UNDECIDED:
                high, blurred = math.ceil(high * BLUR_STEP), True
            elif rising:
                low, high, low_holds = high, math.ceil(high * stride), False
                stride = min(stride**2, LONGEST_STRIDE)
        elif blurred or Bracket(low, high).is_within(tolerance):
            return _as_told(Bracket(low, high), tolerance)
        else:
            middle = round(math.sqrt(low * high))
            found = _times(run, middle, Kind.KEPT_UP, wanted=3, spare=0)
            blurred = found is Kind.UNDECIDED
            if found is Kind.KEPT_UP:
                low = middle
            elif not blurred:
                high, high_holds = middle, False
    return Bracket(
        low if low_holds else None,
        high if high_holds else None,
        f"no bracket could be confirmed in {MAX_SHIFTS} tries: the runs contradict each other, or"
        " none decides",
    )


def _as_told(bracket: Bracket, tolerance: float) -> Bracket:
    if bracket.is_within(tolerance):
        return bracket
    why = (
        f"between {bracket.keeps_up:,}/s, which it keeps up with, and {bracket.falls_behind:,}/s,"
        " where it falls behind, its lag swings too much for any run to tell"
    )
    return Bracket(bracket.keeps_up, bracket.falls_behind, why)


def _next_rate(bracket: Bracket) -> int:
    if bracket.falls_behind is None:
        assert bracket.keeps_up is not None  # noqa: S101  # one of the two was just observed
        return round(bracket.keeps_up * CLIMB_FACTOR)
    if bracket.keeps_up is None:
        return max(1, round(bracket.falls_behind / CLIMB_FACTOR))
    return round(math.sqrt(bracket.keeps_up * bracket.falls_behind))


def _times(run: Observe, rate: int, wanted_kind: Kind, *, wanted: int, spare: int) -> Kind:
    """`wanted_kind` if `wanted` fresh runs end so before more than `spare` end otherwise, the first
    that decides not among those; undecided if so many runs did not decide that it is no use to go
    on; else what they ended as."""
    as_wanted = otherwise = undecided = 0
    while True:
        kind = run(rate)
        if kind in NOT_THE_ENGINE:
            raise _NotTheEngine(f"{kind} at {rate:,}/s")
        as_wanted += kind is wanted_kind
        undecided += kind is Kind.UNDECIDED
        otherwise += kind not in (wanted_kind, Kind.UNDECIDED)
        if as_wanted == wanted:
            return wanted_kind
        # Where not even the first decided run ended so, the next rate says more than another run.
        if otherwise > (spare if as_wanted else 0):
            return kind
        if undecided == MOST_UNDECIDED:
            return Kind.UNDECIDED
