"""Saturation of an engine on a running session: the load offered, the rate at which a backlog of 5
to 30 s of work remains, the end of warm-up, and draining."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from racetrack.analysis import capacity, curves, limits, outcome, raw, views
from racetrack.analysis.capacity import MeasuredWork
from racetrack.analysis.curves import Curves
from racetrack.config import Settings, for_record
from racetrack.errors import RacetrackError
from racetrack.results.folder import read_run
from racetrack.results.run import Window
from racetrack.run.session import LoadSample, Session
from racetrack.workloads.contract import workload_in

# A rate well below the capacity of any engine, at which saturation starts.
LOW_PER_S = 1_000
# Probes write the last rows of a window up to this long after its end.
ROWS_WITHIN_S = 1.0
# Time limit for saturating an engine. An engine with a capacity of 300,000/s is saturated in less
# than half a minute, starting at 1,000/s.
SATURATED_WITHIN_S = 180.0
# Fractions of the next rate that are offered while a backlog drains. The first usually suffices; an
# engine whose updates have become very long may only drain with almost no load.
DRAIN_SHARE, TRICKLE_SHARE = 0.3, 0.01
DRAINED_S = 1.0
DRAINED_WITHIN_S = 60.0

# The backlog should be between 5 and 30 s of work; the target leaves a margin on both sides.
TARGET_S = 15.0
LEAST_S = 5.0
# Time constant of the proportional control.
CORRECTS_OVER_S = 15.0
MOST_FACTOR, LEAST_FACTOR = 2.0, 0.3
# Throughput is averaged over this time and the interval between results of windows, which is longer
# than an update interval but short enough to keep the control loop from oscillating.
WORK_OVER_S = 10.0
FIRST_ESTIMATE_S = 2.0
# A shorter drop of the throughput may be a pause of the engine, or the time until a window ends, so
# the highest throughput of this time is used.
PAUSE_S = 5.0
LEAST_PER_S = 1.0  # lower limit of the throughput, for an engine that counts nothing

FLAT_WITHIN = 0.05
FLAT_BINS = 3
FLAT_BIN_S = 15.0


class RateController:
    """Proportional controller of the offered rate. It offers the measured throughput, corrected
    upwards while the backlog is below the target and downwards while it is above. So the rate
    doubles every few seconds until the engine no longer keeps up. `results_every_s` is
    the time between results of windows."""

    def __init__(self, start_per_s: float, results_every_s: float = 0.0) -> None:
        self.per_s = start_per_s
        self._over_s = WORK_OVER_S + results_every_s
        self._pause_s = PAUSE_S + results_every_s
        self.backlog_s = 0.0  # seconds to process the backlog; 0 until the throughput is known
        self._has_windows, self._works_per_s = results_every_s > 0, LEAST_PER_S
        self._samples: deque[LoadSample] = deque()

    def next_per_s(self, now: LoadSample) -> int:
        """Return the rate to offer next, in events per second."""
        if self._samples and now.at_s - self._samples[-1].at_s > self._over_s:
            self._samples.clear()
        self._samples.append(now)
        while len(self._samples) > 2 and now.at_s - self._samples[1].at_s >= self._over_s:
            self._samples.popleft()
        then = self._samples[0]
        passed_s, backlog_s = now.at_s - then.at_s, 0.0
        if passed_s >= FIRST_ESTIMATE_S:
            # While an engine works on a large window, it shows nothing.
            if now.counted > then.counted or not self._has_windows:
                self._works_per_s = _work_per_s(then, now)
            works_per_s = self._works_per_s
            backlog_s = now.waiting / works_per_s
            wanted_per_s = _wanted_per_s(works_per_s, now.waiting)
            if passed_s < self._pause_s and wanted_per_s < self.per_s:
                best_per_s = max(_work_per_s(*pair) for pair in pairwise(self._samples))
                at_best_per_s = _wanted_per_s(best_per_s, now.waiting)
                stands_still = best_per_s == LEAST_PER_S
                wanted_per_s = self.per_s if stands_still else min(self.per_s, at_best_per_s)
            self.per_s = wanted_per_s
        self.backlog_s = backlog_s if passed_s >= self._over_s else 0.0
        return max(1, round(self.per_s))


def _work_per_s(then: LoadSample, now: LoadSample) -> float:
    return max(LEAST_PER_S, (now.counted - then.counted) / (now.at_s - then.at_s))


def _wanted_per_s(works_per_s: float, waiting: int) -> float:
    """Return the rate to offer, given the throughput and the number of waiting events."""
    factor = 1 + (TARGET_S - waiting / works_per_s) / CORRECTS_OVER_S
    return works_per_s * min(MOST_FACTOR, max(LEAST_FACTOR, factor))


class WarmUpDetector:
    """Detects the end of warm-up: CPU time per event has become flat."""

    def __init__(self, bin_s: float) -> None:
        self._bin_s = bin_s
        self._began: LoadSample | None = None
        self._costs: deque[float] = deque(maxlen=FLAT_BINS)

    def is_flat(self, now: LoadSample) -> bool:
        """Return whether CPU time per event was flat: in each of the last FLAT_BINS bins of time,
        it was within FLAT_WITHIN of their mean."""
        began = self._began = self._began or now
        if now.at_s - began.at_s >= self._bin_s:
            self._began = now
            if counted := now.counted - began.counted:
                self._costs.append((now.cpu_s - began.cpu_s) / counted)
            else:
                self._costs.clear()
        if len(self._costs) < FLAT_BINS:
            return False
        mean = sum(self._costs) / FLAT_BINS
        return all(abs(cost - mean) <= FLAT_WITHIN * mean for cost in self._costs)


class SessionLoad:
    """Load on a session: events in the main topic, measured by the engine's count and by traced
    views."""

    def __init__(self, session: Session, folder: Path, settings: Settings) -> None:
        self.session, self._folder = session, folder
        self._settings, workload = settings, workload_in(settings)
        self._topic = workload.topic.name
        self.results_every_s = workload.results_every_s

    def offer(self, per_s: int) -> None:
        """Set the rate without printing it; for rates that change every second."""
        self.session.offer(per_s)

    def set_rate(self, per_s: int) -> None:
        """Set the rate, print it, and check that the load arrives.

        Raises:
            RacetrackError: the load does not arrive.
        """
        self.session.set_rate(per_s)

    def work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput in a window, divided into batches of about `batch_s` seconds.

        Raises:
            RacetrackError: the window has fewer than two updates.
        """
        try:
            return capacity.measured(self._folder, self._count(), self._topic, window, batch_s)
        except ValueError as error:
            raise RacetrackError(f"The engine's capacity is unknown: {error}.") from error

    def counted_per_s(self, window: Window) -> float:
        """Return the throughput of the engine's count in a window, without that of the views.

        Raises:
            RacetrackError: the window has fewer than two updates.
        """
        try:
            whole_s = window.seconds
            return capacity.work(self._count(), window.start_ms, window.end_ms, whole_s).per_s
        except ValueError as error:
            raise RacetrackError(f"The engine's capacity is unknown: {error}.") from error

    def cpu_s_per_million(self, window: Window, made: MeasuredWork) -> dict[str, float]:
        """Return the CPU seconds of each service per million events processed in a window."""
        usage, counted = raw.usage(self._folder), made.work.per_s * window.seconds
        return capacity.cpu_s_per_million(usage, window.start_ms, window.end_ms, counted)

    def sample(self) -> LoadSample:
        """Return the current counters of due and counted events, and the CPU time used so far. An
        event is counted once it is in the engine's count."""
        return self.session.load_sample()

    def lags(self) -> list[Curves]:
        """Return the curves whose lag a trial watches: those of the traced views, or of the
        engine's count if no view is traced. The highest lag counts.

        Raises:
            RacetrackError: the broker has deleted part of the backlog.
        """
        count = self._count()
        traced = [view for _, view in views.traced_curves(self._folder, count.partitions)]
        return traced or [count]

    def limited_by(self, window: Window, made: MeasuredWork) -> str:
        """Return what other than the engine limited the throughput in a window; "" if nothing
        did."""
        if made.work.is_capacity:
            return limits.busy_cores(self._folder, read_run(self._folder), window)
        rates = curves.throughput(curves.read(self._folder), window.start_ms, window.end_ms)
        idle = f"it was idle for {100 * made.work.idle_share:.0f} % of the time"
        return f"{idle}, because {limits.too_slow(rates)}"

    def _count(self) -> Curves:
        count = curves.read(self._folder)
        deleted = outcome.deleted_unread(curves.deleted_unread(count), for_record(self._settings))
        if deleted:
            raise RacetrackError(f"{deleted}.")
        return count


@dataclass(frozen=True)
class Warmth:
    """Duration of the warm-up, and whether CPU time per event was flat at its end."""

    took_s: float
    is_warm: bool


class Saturation:
    """Raises the rate until the engine has a backlog, then keeps the backlog at 5 to 30 s of
    work."""

    def __init__(self, load: SessionLoad, folder: Path, start_per_s: int = LOW_PER_S) -> None:
        self._load, self._session, self._clock = load, load.session, load.session.clock
        self._folder, self._start_per_s = folder, start_per_s
        self._controller = RateController(start_per_s, load.results_every_s)
        self._detector = WarmUpDetector(FLAT_BIN_S)
        self._is_flat = False
        self._within_s = SATURATED_WITHIN_S
        self._since_s: float | None = None  # when saturation began

    def warm_up(self, most_s: float, low_s: float, bin_s: float = FLAT_BIN_S) -> Warmth:
        """Offer a low rate for `low_s`, then saturate the engine until it is warm: its CPU time per
        event, in bins of `bin_s`, is flat and it has a backlog. End the warm-up after `most_s` even
        if CPU time is not flat.

        Raises:
            RacetrackError: the engine was not saturated in time, or a component of the stack
            failed.
        """
        began_s, self._detector = self._clock.monotonic(), WarmUpDetector(bin_s)
        self._within_s = max(SATURATED_WITHIN_S, 2 * most_s)
        self._offer_low_rate(low_s, "starting at a low rate")
        self._since_s = self._clock.monotonic()

        def is_warm() -> bool:
            return self._is_flat or self._clock.monotonic() - began_s >= most_s

        self._until_behind(is_warm)
        return Warmth(round(self._clock.monotonic() - began_s, 1), self._is_flat)

    def end(self) -> bool:
        """End the saturation, since another rate is about to be set. Return whether there was one,
        so that the engine has a backlog."""
        was_saturated, self._since_s = self._since_s is not None, None
        return was_saturated

    def measure(self, for_s: float, hold_s: float) -> Window:
        """Saturate the engine for a while and return the measured window. The window begins once
        the engine has been saturated for `hold_s` and the backlog has reached its target size, or
        after `hold_s` with a backlog if it does not reach that.

        Raises:
            RacetrackError: the engine was not saturated in time, or a component of the stack
            failed.
        """
        since_s = self._since_s = self._since_s or self._clock.monotonic()
        self._until_behind(lambda: True)

        def is_filled() -> bool:
            lasts_long = self._clock.monotonic() - since_s >= hold_s
            return lasts_long and self._controller.backlog_s >= TARGET_S

        self._session.wait_until(is_filled, hold_s, "saturating", self._control)
        start_ms = self._clock.now_ms()
        self.go_on(for_s)
        window = Window(start_ms=start_ms, end_ms=self._clock.now_ms())
        self.go_on(ROWS_WITHIN_S)
        return window

    def go_on(self, for_s: float) -> None:
        """Keep the engine saturated.

        Raises:
            RacetrackError: a component of the stack failed.
        """
        self._session.wait_until(_never, for_s, "measuring throughput", self._control)

    def _offer_low_rate(self, low_s: float, why: str) -> None:
        self._load.offer(min(LOW_PER_S, self._start_per_s))
        self._session.watch(low_s, why)

    def _until_behind(self, is_enough: Callable[[], bool]) -> None:
        def is_over() -> bool:
            return is_enough() and self._controller.backlog_s >= LEAST_S

        if not self._session.wait_until(is_over, self._within_s, "saturating", self._control):
            raise RacetrackError(
                f"The engine was not saturated within {self._within_s:.0f} s; the last rate was"
                f" {self._controller.per_s:,.0f}/s. curves.csv shows its progress. Start nearer to"
                " its capacity, with --start."
            )

    def _control(self) -> str:
        sample = self._load.sample()
        self._is_flat = self._is_flat or self._detector.is_flat(sample)
        offered = self._controller.next_per_s(sample)
        self._load.offer(offered)
        return f"offering {offered:,}/s, backlog {self._controller.backlog_s:.0f} s"


def drain(load: SessionLoad, per_s: int) -> bool:
    """Offer a fraction of this rate until the backlog is drained. Return False if it was not
    drained in time.

    Raises:
        RacetrackError: a component of the stack failed.
    """

    def is_drained() -> bool:
        return load.sample().waiting <= DRAINED_S * max(1, per_s)

    if is_drained():
        return True
    for share in (DRAIN_SHARE, TRICKLE_SHARE):
        load.offer(round(share * per_s))
        if load.session.wait_until(is_drained, DRAINED_WITHIN_S, "draining the backlog"):
            return True
    return False


def _never() -> bool:
    return False
