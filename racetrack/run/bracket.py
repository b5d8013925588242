"""How the limit is searched for: which rate to try next, and when to stop. No I/O.

Whether a rate is kept up with is asked of functions, so that the search can be tried on engines
that are made up.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from racetrack.results_record import VerdictKind

Observe = Callable[[int], VerdictKind]
NOT_THE_ENGINE = (VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND)
CLIMB_FACTOR = 2.0
MOST_UNDECIDED = 2  # of one rate
NEAR_UNDECIDED = 0.15  # beside a rate that no run could tell, the limit is not found closer anyway
LONGEST_STRIDE = 1.5
ENOUGH_UNDECIDED_RATES = 6  # rates that could not be told, after which nothing is narrowed any more
MOST_UNDECIDED_RATES = 10
MAX_STEPS = 60
NOT_EVEN_ONE = "it does not keep up with one pageview per second"


@dataclass(frozen=True)
class Bracket:
    """The highest rate seen to be kept up with, the lowest seen to fall behind (pageviews/s); None
    where none was. `stopped_by` says what else ended the search."""

    keeps_up: int | None
    falls_behind: int | None
    stopped_by: str | None = None


def climb(observe: Observe, start: int, tolerance: float) -> Bracket:
    """Guess the limit: double from `start` until the engine falls behind, halve until it keeps up,
    then take the geometric mean until both are within `tolerance`.

    The guess only has to say where fresh runs should look. So a rate that stays undecided is passed
    over while rates are doubled, and ends the climb after that: to look closer would be to measure
    noise. A rate that was not truly offered counts as too high.
    """
    low: int | None = None
    high: int | None = None
    rate = start
    while True:
        kind = observe(rate)
        if kind is VerdictKind.KEPT_UP:
            low = rate
        elif kind is not VerdictKind.UNDECIDED:
            high = rate
        elif high is not None:
            return Bracket(low or rate, high)
        if high is None:
            rate = round(rate * CLIMB_FACTOR)
        elif high <= 1:
            return Bracket(None, 1, NOT_EVEN_ONE)
        elif low is None:
            rate = max(1, round(high / CLIMB_FACTOR))
        elif is_within(low, high, tolerance):
            return Bracket(low, high)
        else:
            rate = _middle(low, high)


def confirm(run: Observe, guess: Bracket, tolerance: float) -> Bracket:
    """Find the limit with fresh runs, beginning at a guess: at the lower rate 3 of 3 must keep up,
    at the upper 2 of 3 must fall behind.

    One run of a rate says where to go on, since most rates will not be the last: up from a rate
    that is kept up with and down from one that falls behind, in growing strides (the climb may have
    been far off: it saw an engine that was still warming up), then by halves. Only the two rates
    that are left are run again.

    Near its limit an engine's lag may swing so much that no run decides, or that runs contradict
    each other. Such rates are left out, and if they keep the two apart, `stopped_by` says so.
    """
    if guess.keeps_up is None or guess.falls_behind is None:
        return guess
    return _Search(run, guess.keeps_up, guess.falls_behind, tolerance).result()


def is_within(low: int, high: int, tolerance: float) -> bool:
    """Whether two rates are no further apart than the tolerance; one pageview always is."""
    return high <= low * (1 + tolerance) + 1


class _Runs:
    """Fresh runs of any rate, each kept: none is made twice to learn the same."""

    def __init__(self, run: Observe) -> None:
        self._run = run
        self._ended: dict[int, list[VerdictKind]] = defaultdict(list)

    def first(self, rate: int) -> VerdictKind:
        """What is settled of a rate, else what its first run said."""
        ended = self._ended[rate]
        if not ended:
            ended.append(self._run(rate))
        return _settled(ended) or ended[0]

    def stands(self, rate: int, kind: VerdictKind) -> bool:
        """Whether that is settled of a rate by the runs there were."""
        return _settled(self._ended[rate]) is kind

    def seen(self, kind: VerdictKind) -> list[int]:
        """The rates of which that was said, first or for good."""
        return [rate for rate in self._ended if self.first(rate) is kind]

    def standing(self, rate: int) -> VerdictKind:
        """What is settled of a rate, after as many runs as that takes."""
        ended = self._ended[rate]
        while (kind := _settled(ended)) is None:
            ended.append(self._run(rate))
        return kind


def _settled(ended: list[VerdictKind]) -> VerdictKind | None:
    """Kept up: 3 of 3. Fell behind: 2 of 3. Undecided: neither can be reached any more, or too many
    runs did not decide. None: it takes more runs."""
    kept, fell = ended.count(VerdictKind.KEPT_UP), ended.count(VerdictKind.FELL_BEHIND)
    for kind in NOT_THE_ENGINE:
        if kind in ended:
            return kind
    if fell == 2:
        return VerdictKind.FELL_BEHIND
    if kept == 3:
        return VerdictKind.KEPT_UP
    if (kept == 2 and fell == 1) or ended.count(VerdictKind.UNDECIDED) == MOST_UNDECIDED:
        return VerdictKind.UNDECIDED
    # A first run that does not decide says as much of a rate as another would.
    return VerdictKind.UNDECIDED if ended == [VerdictKind.UNDECIDED] else None


class _Search:
    """Two rates that close in on the limit; `undecided` are the rates that no run could tell."""

    def __init__(self, run: Observe, low: int, high: int, tolerance: float) -> None:
        self._runs, self._tolerance = _Runs(run), tolerance
        self._low, self._high = low, max(high, low + 1)
        self._stride = min(max(1 + tolerance, self._high / low), LONGEST_STRIDE)
        self._undecided: set[int] = set()
        self._not_offered: int | None = None

    def result(self) -> Bracket:
        """The confirmed rates, or why there are none."""
        for _ in range(MAX_STEPS):
            found = self._step()
            if found is not None:
                return found
            if self._low < 1 or len(self._undecided) > MOST_UNDECIDED_RATES:
                break
        why = "no two rates could be confirmed: its runs contradict each other, or do not decide"
        if self._high == 1 and self._runs.first(1) is VerdictKind.FELL_BEHIND:
            why = NOT_EVEN_ONE
        return Bracket(
            self._low if self._runs.stands(self._low, VerdictKind.KEPT_UP) else None,
            self._high if self._runs.stands(self._high, VerdictKind.FELL_BEHIND) else None,
            why,
        )

    def _step(self) -> Bracket | None:
        """Move one of the rates; the result if there is nothing left to move."""
        above = self._runs.first(self._high)
        if above in NOT_THE_ENGINE:
            return self._below(self._high, above)
        if above is VerdictKind.KEPT_UP:
            self._up(above)
        elif (below := self._runs.first(self._low)) is not VerdictKind.KEPT_UP:
            self._down(below)
        elif above is VerdictKind.UNDECIDED:
            self._up(above)
        elif (between := self._next_between()) is not None:
            self._narrow(between)
        elif self._runs.standing(self._high) is VerdictKind.FELL_BEHIND:
            below = self._runs.standing(self._low)
            return self._as_told() if below is VerdictKind.KEPT_UP else None
        return None

    def _up(self, seen: VerdictKind) -> None:
        if seen is VerdictKind.KEPT_UP:
            self._low = self._high
        else:
            self._undecided.add(self._high)
        known = [rate for rate in self._runs.seen(VerdictKind.FELL_BEHIND) if rate > self._high]
        further = min(known, default=math.ceil(self._high * self._longer_stride()))
        self._high = min(further, self._not_offered or further)

    def _down(self, seen: VerdictKind) -> None:
        if seen is VerdictKind.UNDECIDED:
            self._undecided.add(self._low)
        else:
            self._high = self._low
        known = [rate for rate in self._runs.seen(VerdictKind.KEPT_UP) if rate < self._low]
        self._low = max(known, default=math.floor(self._low / self._longer_stride()))

    def _below(self, rate: int, kind: VerdictKind) -> Bracket | None:
        """A rate that was not truly offered: go on below it, as long as there is room."""
        self._not_offered = rate
        if not is_within(self._low, rate, self._tolerance):
            self._high = _middle(self._low, rate)
            return None
        stands = self._runs.standing(self._low) is VerdictKind.KEPT_UP
        return Bracket(self._low if stands else None, None, f"{kind} at {rate:,}/s")

    def _narrow(self, rate: int) -> None:
        seen = self._runs.first(rate)
        if seen is VerdictKind.KEPT_UP:
            self._low = rate
        elif seen is VerdictKind.UNDECIDED:
            self._undecided.add(rate)
        else:
            self._high = rate

    def _next_between(self) -> int | None:
        """The middle of what lies below the undecided, or above it, where that is too wide."""
        if len(self._undecided) > ENOUGH_UNDECIDED_RATES:
            return None
        undecided = [rate for rate in self._undecided if self._low < rate < self._high]
        gaps = [(self._low, self._high)]
        if undecided:
            gaps = [(self._low, min(undecided)), (max(undecided), self._high)]
        near = NEAR_UNDECIDED if undecided else self._tolerance
        wide = [gap for gap in gaps if not is_within(*gap, near)]
        return _middle(*wide[0]) if wide else None

    def _longer_stride(self) -> float:
        stride, self._stride = self._stride, min(self._stride**2, LONGEST_STRIDE)
        return stride

    def _as_told(self) -> Bracket:
        if is_within(self._low, self._high, self._tolerance):
            return Bracket(self._low, self._high)
        why = (
            f"between {self._low:,}/s, which it keeps up with, and {self._high:,}/s, where it falls"
            " behind, its lag swings too much for runs to tell"
        )
        return Bracket(self._low, self._high, why)


def _middle(low: int, high: int) -> int:
    return round(math.sqrt(low * high))
