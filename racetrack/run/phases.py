"""The phases of a run that the search for a limit makes: overloaded, drained, held at a rate."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from racetrack.analysis import curves
from racetrack.analysis.age import age, quantiles_ms
from racetrack.analysis.curves import Curves
from racetrack.analysis.silence import rhythm_ms, update_times_ms
from racetrack.clock import now_ms
from racetrack.errors import RacetrackError
from racetrack.run.loads import Load
from racetrack.run.search import BOUNDS_MS, QUANTILE
from racetrack.run.steering import LEAST_S, TARGET_S, Steering, Warmth
from racetrack.run_record import Window

# Each such look reads all that was recorded.
LOOK_AT_LAG_EVERY_S = 10.0
# The rows of a window are written a moment after its end.
ROWS_WITHIN_S = 1.0
# From 1,000/s it takes less than half a minute to overload what works 300,000/s.
OVERLOADED_WITHIN_S = 180.0
# An engine that takes all that waits in one update works faster, the longer its updates are; from
# next to nothing to do they grow for half a minute and more (docs/measured.md).
OVERLOADED_FOR_S = 60.0
FILLED_WITHIN_S = 60.0
# A backlog is worked off while this part of the next rate is offered; so much of it may be left. An
# engine whose updates have grown long gets there only when next to nothing is offered.
DRAIN_SHARE, TRICKLE_SHARE = 0.3, 0.01
DRAINED_S = 1.0
DRAINED_WITHIN_S = 60.0


@dataclass(frozen=True)
class Pace:
    """How long each phase takes, and for which bounds of the lag rates are tried; simulated by
    tests/run/fluid.py."""

    look_s: float
    warm_up_most_s: float
    warmth_bin_s: float
    work_s: float
    batch_s: float
    settle_s: float
    hold_s: float
    within_min: float
    start_and_stop_s: float = 30.0
    drain_s: float = 20.0
    overload_s: float = 65.0
    bounds_ms: tuple[float, ...] = BOUNDS_MS

    def has_time_to_hold(self, used_s: float) -> bool:
        """Whether one more rate can be watched to its end, and the engine's work be measured."""
        rate_s = self.drain_s + self.settle_s + self.hold_s
        return used_s + rate_s + self.overload_s + self.work_s <= 60 * self.within_min


PACE = Pace(
    look_s=10,
    warm_up_most_s=120,
    warmth_bin_s=15,
    work_s=120,
    batch_s=30,
    settle_s=15,
    hold_s=90,
    within_min=15,
)


@dataclass(frozen=True)
class WarmUp:
    """How long an engine took to be warm and to have a backlog, and whether its cost was flat."""

    took_s: float
    is_warm: bool


@dataclass(frozen=True)
class Lag:
    """A rate that was watched: the lag in the window, of the count or of the view whose p99 is the
    highest, and what the generator truly offered there.

    `broken_off`: the bound could not hold any more, so it was not watched to its end.
    """

    window: Window
    lag_p50_ms: float
    lag_p99_ms: float
    handed_over_per_s: float
    broken_off: bool


class Overload:
    """Offers ever more until there is a backlog, and keeps it at 5 to 30 s of work."""

    def __init__(self, load: Load, folder: Path, start_per_s: int, pace: Pace) -> None:
        self._load, self._session = load, load.session
        self._folder, self._start_per_s = folder, start_per_s
        self.pace = pace
        self._steering, self._warmth = Steering(start_per_s), Warmth(pace.warmth_bin_s)
        self._is_warm = False
        self._since_s: float | None = None  # when it began to be overloaded

    def warm_up(self) -> WarmUp:
        """Begin with little; then overload it until it is warm, or has had its time, and has a
        backlog.

        Raises:
            RacetrackError: it was not overloaded in time, or a part of the stack failed.
        """
        began_s = time.monotonic()
        self._offer_little("beginning with little")
        self._since_s = time.monotonic()

        def is_warm() -> bool:
            return self._is_warm or time.monotonic() - began_s >= self.pace.warm_up_most_s

        self._until_behind(is_warm)
        return WarmUp(round(time.monotonic() - began_s, 1), self._is_warm)

    def cycle_ms(self) -> float:
        """The engine's usual time between two updates when it has little to do: of one that is warm
        and has no backlog, since Java takes many times as long before. 0 if it told of none.

        Raises:
            RacetrackError: a part of the stack failed.
        """
        start_ms, self._since_s = now_ms(), None
        self._offer_little("looking how often it updates")
        updates = update_times_ms(curves.read(self._folder))
        return rhythm_ms(updates[updates >= start_ms], now_ms()) or 0.0

    def _offer_little(self, why: str) -> None:
        self._load.offer(min(self._load.little_per_s, self._start_per_s))
        self._session.watch(self.pace.look_s, why)

    def measure(self) -> Window:
        """The time in which its work counts. It begins when the engine has been overloaded for
        OVERLOADED_FOR_S and the backlog is as large as it is to stay, or FILLED_WITHIN_S after
        there is one.

        Raises:
            RacetrackError: as above.
        """
        since_s = self._since_s = self._since_s or time.monotonic()
        self._until_behind(lambda: True)

        def is_filled() -> bool:
            lasts_s = time.monotonic() - since_s
            return lasts_s >= OVERLOADED_FOR_S and self._steering.backlog_s >= TARGET_S

        self._session.wait_until(is_filled, FILLED_WITHIN_S, "overloading", self._steer)
        start_ms = now_ms()
        self._session.wait_until(_never, self.pace.work_s, "measuring its work", self._steer)
        window = Window(start_ms=start_ms, end_ms=now_ms())
        self._session.wait_until(_never, ROWS_WITHIN_S, "measuring its work", self._steer)
        return window

    def _until_behind(self, is_enough: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return is_enough() and self._steering.backlog_s >= LEAST_S

        within_s = max(OVERLOADED_WITHIN_S, 2 * self.pace.warm_up_most_s)
        if not self._session.wait_until(is_over, within_s, "overloading", self._steer):
            raise RacetrackError(
                f"The engine could not be overloaded within {within_s:.0f} s; the last rate"
                f" was {self._steering.per_s:,.0f}/s. Its curves show how far it came: begin nearer"
                " to its limit, with --start."
            )

    def _steer(self) -> str:
        look = self._load.look()
        self._is_warm = self._is_warm or self._warmth.is_flat(look)
        offered = self._steering.next_per_s(look)
        self._load.offer(offered)
        return f"offering {offered:,}/s, a backlog of {self._steering.backlog_s:.0f} s"


def drain(load: Load, per_s: int) -> bool:
    """Offer a part of this rate until the engine has worked off its backlog, or has had its time;
    whether it has.

    Raises:
        RacetrackError: a part of the stack failed.
    """

    def is_drained() -> bool:
        look = load.look()
        return look.due - look.counted <= DRAINED_S * per_s

    if is_drained():
        return True
    for share in (DRAIN_SHARE, TRICKLE_SHARE):
        load.offer(max(1, round(share * per_s)))
        if load.session.wait_until(is_drained, DRAINED_WITHIN_S, "working off the backlog"):
            return True
    return False


def hold(load: Load, per_s: int, bound_ms: float, pace: Pace) -> Lag:
    """Set a rate, let it settle, and watch the lag for `hold_s`, or until it has been above the
    bound for more of that than p99 allows.

    Raises:
        RacetrackError: a part of the stack failed.
    """
    session = load.session
    load.set_rate(per_s)
    session.watch(pace.settle_s, "settling")
    start_ms, broken_off = now_ms(), False
    end_s = time.monotonic() + pace.hold_s
    while (left_s := end_s - time.monotonic()) > 0 and not broken_off:
        session.watch(min(LOOK_AT_LAG_EVERY_S, left_s), "watching its lag")
        broken_off = _above_s(load, start_ms, bound_ms) > (1 - QUANTILE) * pace.hold_s
    window = Window(start_ms=start_ms, end_ms=now_ms())
    session.watch(ROWS_WITHIN_S, "watching its lag")
    ages = (age(told, window.start_ms, window.end_ms) for told in load.lags())
    p50_ms, p99_ms = max((quantiles_ms(one, (0.5, QUANTILE)) for one in ages), key=itemgetter(1))
    return Lag(
        window=window,
        lag_p50_ms=p50_ms,
        lag_p99_ms=p99_ms,
        handed_over_per_s=load.handed_over_per_s(window),
        broken_off=broken_off,
    )


def _never() -> bool:
    return False


def _above_s(load: Load, start_ms: int, bound_ms: float) -> float:
    """For how long the lag of the count or of a view was above a bound, that of the worst."""
    return max(_so_long_above_s(told, start_ms, bound_ms) for told in load.lags())


def _so_long_above_s(told: Curves, start_ms: int, bound_ms: float) -> float:
    aged = age(told, start_ms, now_ms())
    above_ms = aged.until_ms - np.maximum(aged.from_ms, aged.oldest_ms + bound_ms)
    return float(np.maximum(above_ms, 0).sum()) / 1000
