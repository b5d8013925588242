"""A run on one fresh stack that measures several windows, at rates and at saturation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from racetrack import terminal
from racetrack.analysis import figures, outcome, raw, windows
from racetrack.analysis.noise import why_window_is_void
from racetrack.clock import Clock
from racetrack.config import Settings, for_record
from racetrack.errors import RacetrackError
from racetrack.results.figures import VerdictKind
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.repeats import Piece, PlannedRun
from racetrack.results.run import Measured, RunArguments, Window, is_void
from racetrack.run import trials
from racetrack.run.lifecycle import repeat_while_void
from racetrack.run.loads import START_PER_S, Load, MeasuredWork
from racetrack.run.trials import PhaseDurations, Saturation
from racetrack.terminal import Screen

# A backlog larger than this is drained before the next rate is set. It is given in seconds of load
# at that rate.
BACKLOG_S = 5.0
# A rate counts as sustained if the p99 of the lag is within this, as in a capacity search. The
# verdict alone is too strict: soon after a change of the rate, the lag of a short window may still
# be rising.
HELD_WITHIN_MS = 5_000.0
# The first part of the warm-up is at the lowest rate: an engine that starts at a high rate may keep
# the backlog of its first seconds for minutes.
GENTLE_SHARE = 1 / 3
PROBE_S, PROBE_MOST_S = 10.0, 40.0

Keep = Callable[[Piece], None]


@dataclass(frozen=True)
class Phases:
    """Durations of the phases of a run, in seconds. `start_and_stop_s` is an estimate."""

    warm_up_s: float
    settle_s: float
    watch_s: float
    saturated_for_s: float
    saturation_s: float
    batch_s: float
    start_and_stop_s: float = 45.0

    def run_s(self, rates: int) -> float:
        """Return the estimated duration of a run with this many rates."""
        each_s = self.settle_s + self.watch_s + 2 * trials.ROWS_WITHIN_S
        saturated_s = self.saturated_for_s + self.saturation_s
        return self.start_and_stop_s + self.warm_up_s + rates * each_s + saturated_s

    @property
    def probe_s(self) -> float:
        """Estimated duration of a run that only measures the throughput at saturation briefly."""
        return self.start_and_stop_s + PROBE_MOST_S

    def saturating(self, warm_up_most_s: float = PROBE_MOST_S) -> PhaseDurations:
        """Return the same durations in the form that `Saturation`, which is part of the capacity
        search, needs."""
        return PhaseDurations(
            look_s=2,
            warm_up_most_s=warm_up_most_s,
            warmth_bin_s=PROBE_S,
            saturation_s=self.saturation_s,
            batch_s=self.batch_s,
            settle_s=self.settle_s,
            trial_s=self.watch_s,
            within_s=0,
            saturated_for_s=self.saturated_for_s,
            filled_within_s=self.saturated_for_s,
        )


class ComparedRun:
    """A run of a comparison or a scaling measurement. Each measured window is recorded as a
    `Piece`."""

    def __init__(
        self,
        load: Load,
        folder: RunFolder,
        settings: Settings,
        phases: Phases,
        screen: Screen,
        guard: terminal.Guard,
        clock: Clock,
    ) -> None:
        self._load, self._session, self._folder = load, load.session, folder
        self._settings, self._phases, self._clock = settings, phases, clock
        self._screen, self._guard = screen, guard

    def probe(self) -> float:
        """Measure the throughput at saturation briefly, without waiting for the engine to warm up,
        to choose rates.

        Raises:
            RacetrackError: the engine was not saturated, or a component of the stack failed.
        """
        durations = self._phases.saturating()
        saturation = Saturation(self._load, self._folder.path, START_PER_S, durations)
        saturation.warm_up()
        return self._work_of_last(PROBE_S).work.per_s

    def measure(
        self, run: PlannedRun, missing: Sequence[int | None], rates: Sequence[int], keep: Keep
    ) -> None:
        """Warm up at the lowest, then at the highest rate. Then measure the missing windows in the
        order of `rates`; None in `missing` stands for the window at saturation.

        Raises:
            RacetrackError: a component of the stack failed.
        """
        top = max(rates)
        for rate, share in ((min(rates), GENTLE_SHARE), (top, 1 - GENTLE_SHARE)):
            self._load.set_rate(rate)
            self._session.watch(share * self._phases.warm_up_s, "warming up")

        for rate in rates:
            if rate in missing:
                self._repeated(partial(self._at_rate, run, rate), keep)
        if None in missing:
            durations = self._phases.saturating()
            saturation = Saturation(self._load, self._folder.path, top, durations)
            self._repeated(partial(self._at_saturation, run, saturation, keep), keep)

    def measure_capacity(
        self, run: PlannedRun, missing: Sequence[int | None], keep: Keep, known: Piece | None
    ) -> None:
        """Warm up at saturation and measure the capacity, then measure the lag at the missing
        rates, except at those above the capacity. None in `missing` stands for the window at
        saturation. `known` is the capacity of this run if it was measured before.

        Raises:
            RacetrackError: a component of the stack failed.
        """
        durations = self._phases.saturating(self._phases.warm_up_s)
        saturation = Saturation(self._load, self._folder.path, START_PER_S, durations)
        saturation.warm_up()
        capacity = known
        if None in missing or not capacity:
            capacity = self._repeated(partial(self._at_saturation, run, saturation, keep), keep)
        per_s = capacity.figures["capacity_per_s"] or 0.0
        for rate in missing:
            if rate is None:
                continue
            if per_s < rate and not capacity.is_lower_bound:
                keep(self._above_capacity(run, rate))
            else:
                self._repeated(partial(self._at_rate, run, rate), keep)

    def _repeated(self, once: Callable[[], Piece], keep: Keep) -> Piece:
        def kept() -> Piece:
            piece = once()
            keep(piece)
            return piece

        return repeat_while_void(kept, _why_void, self._screen, self._guard)

    def _above_capacity(self, run: PlannedRun, per_s: int) -> Piece:
        return Piece(
            **dict(run),
            pageviews_per_s=per_s,
            tag=self._folder.tag,
            verdict=str(VerdictKind.FELL_BEHIND),
            remark="(not offered, since it is above the capacity)",
        )

    def _at_rate(self, run: PlannedRun, per_s: int) -> Piece:
        if self._load.sample().waiting > BACKLOG_S * per_s:
            trials.drain(self._load, per_s)
        rate_set_ms = self._clock.now_ms()
        self._load.set_rate(per_s)
        self._session.watch(self._phases.settle_s, "settling")
        start_ms = self._clock.now_ms()
        self._session.watch(self._phases.watch_s, "measuring")
        window = Window(start_ms=start_ms, end_ms=self._clock.now_ms())
        self._session.watch(trials.ROWS_WITHIN_S, "measuring")
        self._session.sample_memory()
        return self._piece(run, per_s, Measured(window=window, rate_set_ms=rate_set_ms, cpu_s={}))

    def _piece(self, run: PlannedRun, per_s: int, measured: Measured) -> Piece:
        """Return the figures of a window, computed as for a run that has only this window."""
        record = read_run(self._folder.path)
        arguments = RunArguments(
            pageviews_per_s=per_s, wait_s=self._phases.settle_s, samples=1, delay_s=1.0
        )
        record.arguments, record.measured = arguments, measured
        record.results = figures.results_of(self._folder.path, record)
        found = windows.values(record)
        return Piece(
            **dict(run),
            pageviews_per_s=per_s,
            tag=self._folder.tag,
            window=measured.window,
            outcome=outcome.run_outcome(record),
            verdict=str(_verdict(record.results.verdict.kind, found.get("lag_p99_ms"))),
            figures={key: value if math.isfinite(value) else None for key, value in found.items()},
        )

    def _at_saturation(self, run: PlannedRun, saturation: Saturation, keep: Keep) -> Piece:
        """Measure the capacity. If the engine fails during the measurement, for example because it
        runs out of memory, the throughput until then is a lower bound of the capacity.

        Raises:
            RacetrackError: the engine failed before there was any throughput at saturation.
        """
        began_ms = self._clock.now_ms()
        try:
            window = saturation.measure()
        except RacetrackError as error:
            within_s = min(self._phases.saturation_s, (self._clock.now_ms() - began_ms) / 1000)
            made = self._work_of_last(within_s)
            keep(self._capacity(run, self._last(within_s), made, f"it ended: {error}"))
            raise
        made = self._load.work(window, self._phases.batch_s)
        idle = f"it was idle for {100 * made.work.idle_share:.0f} % of the time"
        return self._capacity(run, window, made, "" if made.work.is_capacity else idle)

    def _last(self, seconds: float) -> Window:
        now_ms = self._clock.now_ms()
        return Window(start_ms=now_ms - round(1000 * seconds), end_ms=now_ms)

    def _work_of_last(self, seconds: float) -> MeasuredWork:
        return self._load.work(self._last(seconds), self._phases.batch_s)

    def _capacity(self, run: PlannedRun, window: Window, made: MeasuredWork, bound: str) -> Piece:
        noise = raw.noise(self._folder.path)
        cpu_s = self._load.cpu_s_per_million(window, made)
        record = read_run(self._folder.path)
        settings, quotas = for_record(self._settings), record.machine.cpu_quotas
        return Piece(
            **dict(run),
            pageviews_per_s=None,
            tag=self._folder.tag,
            window=window,
            outcome=why_window_is_void(noise, window, settings, quotas) or "ok",
            figures={
                "capacity_per_s": made.work.per_s,
                "saturated_cpu_s_per_million": sum(
                    cpu_s.get(name, 0.0) for name in record.engine_services
                )
                or None,
                "idle_share_pct": 100 * made.work.idle_share,
            },
            is_lower_bound=bool(bound),
            remark=bound,
        )


def _verdict(kind: VerdictKind, lag_p99_ms: float | None) -> VerdictKind:
    """Return the verdict on a rate. If the lag rises, it is "undecided" as long as the p99 of the
    lag stays within HELD_WITHIN_MS, and "fell behind" otherwise (None: the lag is infinite). Other
    verdicts are unchanged."""
    if kind not in (VerdictKind.FELL_BEHIND, VerdictKind.UNDECIDED):
        return kind
    is_held = lag_p99_ms is not None and lag_p99_ms <= HELD_WITHIN_MS
    return VerdictKind.UNDECIDED if is_held else VerdictKind.FELL_BEHIND


def _why_void(piece: Piece) -> str | None:
    return piece.outcome if is_void(piece.outcome) else None
