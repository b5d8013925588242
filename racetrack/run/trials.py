"""Phases of a run of the capacity search: warm-up, saturation, draining, and rate trials."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from racetrack.analysis import curves
from racetrack.analysis.curves import Curves, update_interval_ms, update_times_ms
from racetrack.analysis.lag import age
from racetrack.errors import RacetrackError
from racetrack.results.run import Window
from racetrack.run.loads import LOW_PER_S, Load
from racetrack.run.search import (
    BOUNDS_MS,
    LEAST_S,
    QUANTILE,
    TARGET_S,
    RateController,
    WarmUpDetector,
)

# The lag is not checked more often, because each check reads all rows recorded so far.
CHECK_LAG_EVERY_S = 10.0
# Probes write the last rows of a window up to this long after its end.
ROWS_WITHIN_S = 1.0
# Time limit for saturating an engine. An engine with a capacity of 300,000/s is saturated in less
# than half a minute, starting at 1,000/s.
SATURATED_WITHIN_S = 180.0
# Time for which the engine must have been saturated before the measurement. Engines that process
# the whole backlog in one update become faster as updates become longer, which takes more than half
# a minute after a low load.
SATURATED_FOR_S = 60.0
FILLED_WITHIN_S = 60.0
# Fractions of the next rate that are offered while a backlog drains. The first usually suffices; an
# engine whose updates have become very long may only drain with almost no load.
DRAIN_SHARE, TRICKLE_SHARE = 0.3, 0.01
DRAINED_S = 1.0
DRAINED_WITHIN_S = 60.0


@dataclass(frozen=True)
class PhaseDurations:
    """Durations of the phases of a search, and the bounds of the lag. simulations/fluid.py computes
    the error of a search with these durations."""

    look_s: float
    warm_up_most_s: float
    warmth_bin_s: float
    saturation_s: float
    batch_s: float
    settle_s: float
    trial_s: float
    within_s: float
    start_and_stop_s: float = 30.0
    drain_s: float = 20.0
    saturate_s: float = 65.0
    saturated_for_s: float = SATURATED_FOR_S
    filled_within_s: float = FILLED_WITHIN_S
    bounds_ms: tuple[float, ...] = BOUNDS_MS

    def has_time_for_trial(self, used_s: float) -> bool:
        """Return whether another rate trial and the final saturation window fit in `within_s`."""
        trial_s = self.drain_s + self.settle_s + self.trial_s
        return used_s + trial_s + self.saturate_s + self.saturation_s <= self.within_s


DURATIONS = PhaseDurations(
    look_s=10,
    warm_up_most_s=120,
    warmth_bin_s=15,
    saturation_s=120,
    batch_s=30,
    settle_s=15,
    trial_s=90,
    within_s=900,
)


@dataclass(frozen=True)
class WarmUp:
    """Duration of the warm-up, and whether CPU time per event was flat at its end."""

    took_s: float
    is_warm: bool


@dataclass(frozen=True)
class TrialLag:
    """Result of a rate trial: the lag of the engine's count or of a view, whichever has the highest
    p99; and the rate that the generator reached. `ended_early` is true if the trial was stopped
    because the lag had exceeded the bound for too long."""

    window: Window
    lag_p50_ms: float
    lag_p99_ms: float
    handed_over_per_s: float
    ended_early: bool


class Saturation:
    """Raises the rate until the engine has a backlog, then keeps the backlog at 5 to 30 s of
    work."""

    def __init__(
        self, load: Load, folder: Path, start_per_s: int, durations: PhaseDurations
    ) -> None:
        self._load, self._session, self._clock = load, load.session, load.session.clock
        self._folder, self._start_per_s = folder, start_per_s
        self.durations = durations
        self._controller = RateController(start_per_s)
        self._warm_up = WarmUpDetector(durations.warmth_bin_s)
        self._is_warm = False
        self._since_s: float | None = None  # when saturation began

    def warm_up(self) -> WarmUp:
        """Start at a low rate, then saturate the engine until it is warm: its CPU time per event is
        flat and it has a backlog. End the warm-up after `warm_up_most_s` even if CPU time is not
        flat.

        Raises:
            RacetrackError: the engine was not saturated in time, or a component of the stack
            failed.
        """
        began_s = self._clock.monotonic()
        self._offer_low_rate("starting at a low rate")
        self._since_s = self._clock.monotonic()

        def is_warm() -> bool:
            elapsed_s = self._clock.monotonic() - began_s
            return self._is_warm or elapsed_s >= self.durations.warm_up_most_s

        self._until_behind(is_warm)
        return WarmUp(round(self._clock.monotonic() - began_s, 1), self._is_warm)

    def update_interval_ms(self) -> float:
        """Measure the engine's typical update interval at low load, after warm-up. Return 0 if the
        engine reported no update.

        Raises:
            RacetrackError: a component of the stack failed.
        """
        start_ms, self._since_s = self._clock.now_ms(), None
        self._offer_low_rate("measuring the update interval")
        updates = update_times_ms(curves.read(self._folder))
        return update_interval_ms(updates[updates >= start_ms], self._clock.now_ms()) or 0.0

    def measure(self) -> Window:
        """Saturate the engine for a while and return the measured window. The window begins once
        the engine has been saturated for `saturated_for_s` and the backlog has reached its target
        size, or after `filled_within_s` if it does not reach that.

        Raises:
            RacetrackError: the engine was not saturated in time, or a component of the stack
            failed.
        """
        since_s = self._since_s = self._since_s or self._clock.monotonic()
        self._until_behind(lambda: True)

        def is_filled() -> bool:
            lasts_long = self._clock.monotonic() - since_s >= self.durations.saturated_for_s
            return lasts_long and self._controller.backlog_s >= TARGET_S

        within_s = self.durations.filled_within_s
        self._session.wait_until(is_filled, within_s, "saturating", self._control)
        start_ms, what = self._clock.now_ms(), "measuring throughput"
        self._session.wait_until(_never, self.durations.saturation_s, what, self._control)
        window = Window(start_ms=start_ms, end_ms=self._clock.now_ms())
        self._session.wait_until(_never, ROWS_WITHIN_S, what, self._control)
        return window

    def _offer_low_rate(self, why: str) -> None:
        self._load.offer(min(LOW_PER_S, self._start_per_s))
        self._session.watch(self.durations.look_s, why)

    def _until_behind(self, is_enough: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return is_enough() and self._controller.backlog_s >= LEAST_S

        within_s = max(SATURATED_WITHIN_S, 2 * self.durations.warm_up_most_s)
        if not self._session.wait_until(is_over, within_s, "saturating", self._control):
            raise RacetrackError(
                f"The engine was not saturated within {within_s:.0f} s; the last rate was"
                f" {self._controller.per_s:,.0f}/s. curves.csv shows its progress. Start nearer to"
                " its capacity, with --start."
            )

    def _control(self) -> str:
        sample = self._load.sample()
        self._is_warm = self._is_warm or self._warm_up.is_flat(sample)
        offered = self._controller.next_per_s(sample)
        self._load.offer(offered)
        return f"offering {offered:,}/s, backlog {self._controller.backlog_s:.0f} s"


def drain(load: Load, per_s: int) -> bool:
    """Offer a fraction of this rate until the backlog is drained. Return False if it was not
    drained in time.

    Raises:
        RacetrackError: a component of the stack failed.
    """

    def is_drained() -> bool:
        return load.sample().waiting <= DRAINED_S * per_s

    if is_drained():
        return True
    for share in (DRAIN_SHARE, TRICKLE_SHARE):
        load.offer(max(1, round(share * per_s)))
        if load.session.wait_until(is_drained, DRAINED_WITHIN_S, "draining the backlog"):
            return True
    return False


def try_rate(load: Load, per_s: int, bound_ms: float, durations: PhaseDurations) -> TrialLag:
    """Set a rate, let it settle, and watch the lag for `trial_s`. Stop earlier if the lag has
    exceeded the bound for so long that its p99 can no longer be within the bound.

    Raises:
        RacetrackError: a component of the stack failed.
    """
    session, clock = load.session, load.session.clock
    load.set_rate(per_s)
    session.watch(durations.settle_s, "settling")
    start_ms, ended_early = clock.now_ms(), False
    end_s = clock.monotonic() + durations.trial_s
    while (left_s := end_s - clock.monotonic()) > 0 and not ended_early:
        session.watch(min(CHECK_LAG_EVERY_S, left_s), "watching the lag")
        ended_early = _above_s(load, start_ms, bound_ms) > (1 - QUANTILE) * durations.trial_s
    window = Window(start_ms=start_ms, end_ms=clock.now_ms())
    session.watch(ROWS_WITHIN_S, "watching the lag")
    ages = (age(curve, window.start_ms, window.end_ms) for curve in load.lags())
    p50_ms, p99_ms = max((each.quantiles_ms((0.5, QUANTILE)) for each in ages), key=itemgetter(1))
    return TrialLag(
        window=window,
        lag_p50_ms=p50_ms,
        lag_p99_ms=p99_ms,
        handed_over_per_s=load.handed_over_per_s(window),
        ended_early=ended_early,
    )


def _never() -> bool:
    return False


def _above_s(load: Load, start_ms: int, bound_ms: float) -> float:
    """Return for how many seconds the lag has exceeded a bound since `start_ms`: the maximum over
    the engine's count and the traced views."""
    until_ms = load.session.clock.now_ms()
    return max(_curve_above_s(curve, start_ms, until_ms, bound_ms) for curve in load.lags())


def _curve_above_s(curve: Curves, start_ms: int, until_ms: int, bound_ms: float) -> float:
    aged = age(curve, start_ms, until_ms)
    above_ms = aged.until_ms - np.maximum(aged.from_ms, aged.oldest_ms + bound_ms)
    return float(np.maximum(above_ms, 0).sum()) / 1000
