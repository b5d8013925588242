"""Phases of a planned run on one fresh stack: warm-up, windows at loads, saturation. Each window is
written into `run.json` as soon as it was measured."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from racetrack import terminal
from racetrack.analysis import figures, outcome, raw, windows
from racetrack.analysis.noise import why_window_is_void
from racetrack.analysis.table import Load as TableLoad
from racetrack.analysis.table import Row, rows_of
from racetrack.config import Settings, for_record
from racetrack.errors import RacetrackError
from racetrack.metrics import CAPACITY
from racetrack.plan.model import Load as PlannedLoad
from racetrack.plan.model import Saturate, WarmUp, Window, load_of
from racetrack.plan.resolve import Cell
from racetrack.results.figures import VerdictKind
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import Measured, RunArguments, WindowRecord, is_void
from racetrack.results.run import Window as Interval
from racetrack.run import trials
from racetrack.run.lifecycle import repeat_while_void
from racetrack.run.loads import Load, MeasuredWork
from racetrack.run.trials import PhaseDurations, Saturation
from racetrack.terminal import Screen

SATURATION = "saturation"
# A backlog larger than this is drained before the next rate is set. It is given in seconds of load
# at that rate.
BACKLOG_S = 5.0
# A scout measures the throughput of its last SCOUT_S, after at most SCOUT_MOST_S.
SCOUT_S, SCOUT_MOST_S, LOOK_S = 10.0, 40.0, 2.0

BRIEFLY = Saturate(saturate=SCOUT_S, hold=0.0, batch=SCOUT_S)

OnRow = Callable[[Row], None]


@dataclass(frozen=True)
class PlannedWindow:
    """A window of a run: a load, or saturation if `load` is None. `per_s` is None while the
    capacity to which a share refers is unknown."""

    phase: Window | Saturate
    load: PlannedLoad | None = None
    per_s: int | None = None

    @property
    def share(self) -> float | None:
        """Share of the engine's own capacity; None for other loads."""
        return None if self.load is None or self.load.is_common else self.load.share

    @property
    def name(self) -> str:
        """Name, unique in the run."""
        if self.load is None:
            return SATURATION
        return str(TableLoad(self.per_s or 0, self.share))


def planned_windows(
    cell: Cell, own_per_s: float | None, slowest_per_s: float | None
) -> list[PlannedWindow]:
    """Return the windows of a run in its order, given the scouted throughput of its variant and of
    the slowest. Shares of the slowest that come to the same rate count once."""
    planned: dict[str, PlannedWindow] = {}
    for phase in cell.phases:
        if isinstance(phase, Saturate):
            planned.setdefault(SATURATION, PlannedWindow(phase))
        for load in map(load_of, phase.loads if isinstance(phase, Window) else ()):
            per_s = load.per_s
            if load.share and load.is_common and slowest_per_s:
                per_s = rounded_down(load.share * slowest_per_s)
            elif load.share and not load.is_common and own_per_s:
                per_s = max(1, round(load.share * own_per_s))
            assert isinstance(phase, Window)  # noqa: S101
            window = PlannedWindow(phase, load, per_s)
            planned.setdefault(window.name, window)
    return list(planned.values())


def rounded_down(per_s: float) -> int:
    """Round a rate down to one significant digit, at least 1, so that repeated comparisons use the
    same rates."""
    whole = max(1, int(per_s))
    unit = 10 ** (len(str(whole)) - 1)
    return int(whole // unit * unit)


def keep(made: WindowRecord, folder: RunFolder, on_row: OnRow) -> None:
    """Write a window into `run.json`, in place of a void one of the same name."""
    with folder.recording() as run:
        run.windows = (*(window for window in run.windows if window.name != made.name), made)
    rows = rows_of(read_run(folder.path), folder.path)
    on_row(next(row for row in rows if row.window == made.name))


def keep_failed(
    planned: Sequence[PlannedWindow],
    known: Collection[str],
    why: str,
    folder: RunFolder,
    on_row: OnRow,
) -> None:
    """Record the windows that a failed run did not measure. `known` are those of other folders."""
    there = {window.name for window in read_run(folder.path).windows}
    for window in planned:
        if window.name not in there and window.name not in known:
            keep(_not_reached(window, outcome=why), folder, on_row)


class PhaseRun:
    """The phases of one run. `known` are windows that earlier folders of the same run contain."""

    def __init__(
        self,
        cell: Cell,
        planned: Sequence[PlannedWindow],
        known: Mapping[str, WindowRecord],
        load: Load,
        folder: RunFolder,
        settings: Settings,
        screen: Screen,
        guard: terminal.Guard,
        on_row: OnRow,
    ) -> None:
        self._cell, self._planned, self._known = cell, planned, dict(known)
        self._load, self._session, self._folder = load, load.session, folder
        self._clock = load.session.clock
        self._settings, self._screen, self._guard, self._on_row = settings, screen, guard, on_row
        self._saturation: Saturation | None = None

    def carry_out(self) -> None:
        """Warm up, and measure the windows that are not known, in the order of the plan.

        Raises:
            RacetrackError: a component of the stack failed.
        """
        for phase in self._cell.phases:
            mine = [window for window in self._planned if window.phase is phase]
            if isinstance(phase, WarmUp):
                self._warm_up(phase)
            for window in mine:
                if window.name not in self._known:
                    self._measure(window)

    def scout(self) -> float:
        """Measure the throughput at saturation briefly, without waiting for the engine to warm up.

        Raises:
            RacetrackError: the engine was not saturated, or a component of the stack failed.
        """
        durations = _durations(BRIEFLY, SCOUT_MOST_S)
        Saturation(self._load, self._folder.path, self._load.start_per_s, durations).warm_up()
        return self._work_of_last(SCOUT_S, _batch_s(self._cell)).work.per_s

    def _warm_up(self, phase: WarmUp) -> None:
        if phase.at == "saturation":
            self._saturate_from(self._load.start_per_s, phase.for_s).warm_up()
            return
        rates = self._rates()
        rate = min(rates) if phase.at == "lowest" else max(rates)
        self._load.set_rate(rate)
        self._session.watch(phase.for_s, "warming up")

    def _rates(self) -> list[int]:
        rates = [window.per_s for window in self._planned if window.per_s is not None]
        return rates or [self._load.start_per_s]

    def _saturate_from(self, start_per_s: int, warm_up_s: float = SCOUT_MOST_S) -> Saturation:
        """Return the saturation of this run, which continues one that a warm-up began."""
        if not self._saturation:
            phases = [phase for phase in self._cell.phases if isinstance(phase, Saturate)]
            phase = next(iter(phases), BRIEFLY)
            self._saturation = Saturation(
                self._load, self._folder.path, start_per_s, _durations(phase, warm_up_s)
            )
        return self._saturation

    def _measure(self, window: PlannedWindow) -> None:
        if isinstance(window.phase, Saturate):
            self._repeated(partial(self._at_saturation, window, window.phase))
            return
        phase = window.phase
        capacity = self._capacity_before(phase)
        own_per_s = capacity.figures.get(CAPACITY.key) if capacity else None
        if window.per_s is None:
            if own_per_s is None:
                raise RacetrackError(f"{window.name}: the engine's capacity is unknown.")
            window = replace(window, per_s=max(1, round((window.share or 0) * own_per_s)))
        is_above = own_per_s is not None and own_per_s < (window.per_s or 0)
        if is_above and not (capacity and capacity.at_least):
            remark = "(not offered, since it is above the capacity)"
            self._keep(_not_reached(window, verdict=str(VerdictKind.FELL_BEHIND), remark=remark))
        else:
            self._repeated(partial(self._at_rate, window, phase, window.per_s or 0))

    def _capacity_before(self, phase: Window) -> WindowRecord | None:
        """Return the window at saturation if the plan has it before a phase."""
        kinds = [type(each) for each in self._cell.phases[: self._cell.phases.index(phase)]]
        return self._known.get(SATURATION) if Saturate in kinds else None

    def _repeated(self, once: Callable[[], WindowRecord]) -> None:
        def kept() -> WindowRecord:
            made = once()
            self._keep(made)
            return made

        def why_void(made: WindowRecord) -> str | None:
            return made.outcome if is_void(made.outcome) else None

        repeat_while_void(kept, why_void, self._screen, self._guard)

    def _keep(self, made: WindowRecord) -> None:
        if not is_void(made.outcome):
            self._known[made.name] = made
        keep(made, self._folder, self._on_row)

    def _at_rate(self, window: PlannedWindow, phase: Window, per_s: int) -> WindowRecord:
        if self._load.sample().waiting > BACKLOG_S * per_s:
            trials.drain(self._load, per_s)
        rate_set_ms = self._clock.now_ms()
        self._load.set_rate(per_s)
        self._session.watch(phase.settle_s, "settling")
        start_ms = self._clock.now_ms()
        self._session.watch(phase.for_s, "measuring")
        within = Interval(start_ms=start_ms, end_ms=self._clock.now_ms())
        self._session.watch(trials.ROWS_WITHIN_S, "measuring")
        self._session.sample_memory()
        return self._at(window, phase, per_s, within, rate_set_ms)

    def _at(
        self, window: PlannedWindow, phase: Window, per_s: int, within: Interval, rate_set_ms: int
    ) -> WindowRecord:
        """Return the figures of a window, computed as for a run that has only this window."""
        record = read_run(self._folder.path)
        record.arguments = RunArguments(
            pageviews_per_s=per_s, wait_s=phase.settle_s, samples=1, delay_s=1.0
        )
        record.measured = Measured(window=within, rate_set_ms=rate_set_ms, cpu_s={})
        record.results = figures.results_of(self._folder.path, record)
        return WindowRecord(
            name=window.name,
            per_s=per_s,
            share=window.share,
            start_ms=within.start_ms,
            end_ms=within.end_ms,
            rate_set_ms=rate_set_ms,
            outcome=outcome.run_outcome(record),
            verdict=str(record.results.verdict.kind),
            figures=windows.values(record),
        )

    def _at_saturation(self, window: PlannedWindow, phase: Saturate) -> WindowRecord:
        """Measure the capacity. If the engine fails during the measurement, for example because it
        runs out of memory, the throughput until then is a lower bound of the capacity.

        Raises:
            RacetrackError: the engine failed before there was any throughput at saturation.
        """
        began_ms = self._clock.now_ms()
        try:
            within = self._saturate_from(max(self._rates())).measure()
        except RacetrackError as error:
            within_s = min(phase.for_s, (self._clock.now_ms() - began_ms) / 1000)
            work = self._work_of_last(within_s, phase.batch_s)
            self._keep(self._capacity(window, self._last(within_s), work, f"it ended: {error}"))
            raise
        work = self._load.work(within, phase.batch_s)
        idle = f"it was idle for {100 * work.work.idle_share:.0f} % of the time"
        return self._capacity(window, within, work, "" if work.work.is_capacity else idle)

    def _capacity(
        self, window: PlannedWindow, within: Interval, work: MeasuredWork, bound: str
    ) -> WindowRecord:
        noise = raw.noise(self._folder.path)
        cpu_s = self._load.cpu_s_per_million(within, work)
        own = read_run(self._folder.path).engine_services
        known = {
            CAPACITY.key: work.work.per_s,
            "saturated_cpu_s_per_million": sum(cpu_s.get(name, 0.0) for name in own) or None,
            "idle_share_pct": 100 * work.work.idle_share,
        }
        return WindowRecord(
            name=window.name,
            start_ms=within.start_ms,
            end_ms=within.end_ms,
            outcome=why_window_is_void(noise, within, for_record(self._settings)) or "ok",
            figures={key: value for key, value in known.items() if value is not None},
            at_least=(CAPACITY.key,) if bound else (),
            remark=bound,
        )

    def _last(self, seconds: float) -> Interval:
        now_ms = self._clock.now_ms()
        return Interval(start_ms=now_ms - round(1000 * seconds), end_ms=now_ms)

    def _work_of_last(self, seconds: float, batch_s: float) -> MeasuredWork:
        return self._load.work(self._last(seconds), batch_s)


def _not_reached(window: PlannedWindow, **values: str) -> WindowRecord:
    return WindowRecord(
        name=window.name,
        per_s=window.per_s,
        share=window.share,
        **values,  # type: ignore[arg-type]
    )


def _batch_s(cell: Cell) -> float:
    return next((phase.batch_s for phase in cell.phases if isinstance(phase, Saturate)), SCOUT_S)


def _durations(phase: Saturate, warm_up_most_s: float) -> PhaseDurations:
    """Return the durations of a saturation in the form of the capacity search."""
    return PhaseDurations(
        look_s=LOOK_S,
        warm_up_most_s=warm_up_most_s,
        warmth_bin_s=SCOUT_S,
        saturation_s=phase.for_s,
        batch_s=phase.batch_s,
        settle_s=0.0,
        trial_s=0.0,
        within_s=0.0,
        saturated_for_s=phase.hold_s,
        filled_within_s=phase.hold_s,
    )
