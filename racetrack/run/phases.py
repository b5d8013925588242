"""The two kinds of run that the search for a limit makes: overloaded, and steady at a rate."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis import curves
from racetrack.analysis.age import age, quantiles_ms
from racetrack.analysis.lag import throughput
from racetrack.analysis.silence import rhythm_ms, update_times_ms
from racetrack.clock import now_ms
from racetrack.errors import RacetrackError
from racetrack.run.search import BOUNDS_MS, QUANTILE, widened_ms
from racetrack.run.session import Session
from racetrack.run.steering import LEAST_S, Steering, Warmth
from racetrack.run_record import Window

LOOK_EVERY_S = 1.0
# Each such look reads all that was recorded.
LOOK_AT_LAG_EVERY_S = 10.0
# The rows of a window are written a moment after its end.
ROWS_WITHIN_S = 1.0
# From 1,000/s it takes less than half a minute to overload what works 300,000/s.
OVERLOADED_WITHIN_S = 180.0


@dataclass(frozen=True)
class Pace:
    """How many runs there are, and how long each takes; simulated by tests/run/fluid.py."""

    sessions: int
    session_s: float
    batch_s: float
    warm_up_most_s: float
    warmth_bin_s: float
    settle_s: float
    hold_s: float
    within_min: float
    start_and_stop_s: float = 25.0

    @property
    def steady_run_s(self) -> float:
        """How long a run at a rate takes at most."""
        return self.start_and_stop_s + self.warm_up_most_s + self.settle_s + self.hold_s


PACE = Pace(
    sessions=2,
    session_s=150,
    batch_s=37.5,
    warm_up_most_s=60,
    warmth_bin_s=10,
    settle_s=30,
    hold_s=90,
    within_min=15,
)


@dataclass(frozen=True)
class Overloaded:
    """An overloaded run: how long the engine warmed up, whether its cost was flat by then, and the
    window in which its work counts."""

    warm_up_s: float
    is_warm: bool
    window: Window


@dataclass(frozen=True)
class Steady:
    """A run at a rate: how the engine warmed up, its usual time between two updates then, and its
    lag in the window in which it was watched, with what the generator gave its client there.

    `broken_off`: no bound could hold any more, so it was not watched to its end.
    """

    warm_up_s: float
    is_warm: bool
    cycle_ms: float
    window: Window
    lag_p50_ms: float
    lag_p99_ms: float
    handed_over_per_s: float
    broken_off: bool


def overload(session: Session, start_per_s: int, pace: Pace) -> Overloaded:
    """Offer ever more until there is a backlog, keep it at 5 to 30 s of work, and let the engine
    work on it for `session_s` from when it is warm.

    Raises:
        RacetrackError: it was not overloaded in time, or a part of the stack failed.
    """
    steering, warming = Steering(start_per_s), _Warming(session, pace)
    session.offer(start_per_s)

    def steer() -> str:
        offered = steering.next_per_s(session.look())
        session.offer(offered)
        return f"offering {offered:,}/s, a backlog of {steering.backlog_s:.0f} s"

    def is_overloaded() -> bool:
        return warming.is_over() and steering.backlog_s >= LEAST_S

    if not session.wait_until(is_overloaded, OVERLOADED_WITHIN_S, "overloading", steer):
        raise RacetrackError(
            f"The engine could not be overloaded within {OVERLOADED_WITHIN_S:.0f} s; the last rate"
            f" was {steering.per_s:,.0f}/s. Its curves show how far it came: begin nearer to its"
            " limit, with --start."
        )
    took_s, start_ms = warming.took_s, now_ms()
    session.wait_until(_never, pace.session_s, "measuring its work", steer)
    window = Window(start_ms=start_ms, end_ms=now_ms())
    session.watch(ROWS_WITHIN_S, "measuring its work")
    return Overloaded(took_s, warming.is_warm, window)


def steady(session: Session, folder: Path, pageviews_per_s: int, pace: Pace) -> Steady:
    """Warm up at half the rate, set it, let it settle, and watch the lag for `hold_s`, or until it
    has been above every bound for more of that than p99 allows.

    Raises:
        RacetrackError: a part of the stack failed.
    """
    warming = _Warming(session, pace)
    session.set_rate(max(1, pageviews_per_s // 2))
    session.wait_until(warming.is_over, pace.warm_up_most_s, "warming up")
    took_s = warming.took_s
    cycle_ms = _cycle_ms(folder)
    session.set_rate(pageviews_per_s)
    session.watch(pace.settle_s, "settling")
    start_ms, broken_off = now_ms(), False
    end_s = time.monotonic() + pace.hold_s
    while (left_s := end_s - time.monotonic()) > 0 and not broken_off:
        session.watch(min(LOOK_AT_LAG_EVERY_S, left_s), "watching its lag")
        broken_off = _lost_s(folder, start_ms, cycle_ms) > (1 - QUANTILE) * pace.hold_s
    window = Window(start_ms=start_ms, end_ms=now_ms())
    session.watch(ROWS_WITHIN_S, "watching its lag")
    told, ends_ms = curves.read(folder), (window.start_ms, window.end_ms)
    p50_ms, p99_ms = quantiles_ms(age(told, *ends_ms), (0.5, QUANTILE))
    return Steady(
        warm_up_s=took_s,
        is_warm=warming.is_warm,
        cycle_ms=cycle_ms,
        window=window,
        lag_p50_ms=p50_ms,
        lag_p99_ms=p99_ms,
        handed_over_per_s=throughput(told, *ends_ms).handed_over_per_s,
        broken_off=broken_off,
    )


def _never() -> bool:
    return False


class _Warming:
    """Whether an engine has been warmed up: until it is warm, or for as long as that may take."""

    def __init__(self, session: Session, pace: Pace) -> None:
        self._session, self._most_s = session, pace.warm_up_most_s
        self._warmth = Warmth(pace.warmth_bin_s)
        self._began_s = time.monotonic()
        self.is_warm = False

    @property
    def took_s(self) -> float:
        """Seconds since it began."""
        return round(time.monotonic() - self._began_s, 1)

    def is_over(self) -> bool:
        """Asked every second."""
        self.is_warm = self.is_warm or self._warmth.is_flat(self._session.look())
        return self.is_warm or self.took_s >= self._most_s


def _cycle_ms(folder: Path) -> float:
    """The usual time between two updates up to now; 0 where there were no two."""
    return rhythm_ms(update_times_ms(curves.read(folder)), now_ms()) or 0.0


def _lost_s(folder: Path, start_ms: int, cycle_ms: float) -> float:
    """For how long the lag was above the widest bound."""
    told = age(curves.read(folder), start_ms, now_ms())
    above_from_ms = told.oldest_ms + widened_ms(max(BOUNDS_MS), cycle_ms)
    above_ms = told.until_ms - np.maximum(told.from_ms, above_from_ms)
    return float(np.maximum(above_ms, 0).sum()) / 1000
