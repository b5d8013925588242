"""Phases of a planned run on one fresh stack: warm-up, windows at loads, saturation, and the search
for sustained rates. Each window is written into `run.json` as soon as it was measured."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import numpy as np

from racetrack import terminal
from racetrack.analysis import figures, limits, outcome, raw, windows
from racetrack.analysis.capacity import MeasuredWork
from racetrack.analysis.curves import Curves
from racetrack.analysis.lag import age
from racetrack.analysis.live_heap import LiveHeap, events_until_full, full_after_min, gib_per_event
from racetrack.analysis.noise import Gate, over, shorter_ns, why_slow, why_void
from racetrack.analysis.table import Load as TableLoad
from racetrack.analysis.table import Row, is_offered, rows_of
from racetrack.analysis.windows import CostLine
from racetrack.config import Settings, for_record
from racetrack.errors import RacetrackError
from racetrack.metrics import (
    ACHIEVED,
    BROKER_CPU,
    CAPACITY,
    IDLE_SHARE,
    LAG_P99,
    MEMORY_FULL_AFTER,
    MEMORY_READ,
    SATURATED_BROKER,
    SATURATED_COST,
    VIEW_LAG_P99,
    sustained,
)
from racetrack.plan.memory import Heap, heap_of
from racetrack.plan.model import Load as PlannedLoad
from racetrack.plan.model import Phase, Saturate, Search, WarmUp, Window, load_of
from racetrack.plan.resolve import DRAIN_S, INPUT_SETTLE_S, INPUT_WARM_UP_S, Cell, phase_s
from racetrack.results.experiment import InputAlone
from racetrack.results.figures import NoiseFigures, VerdictKind
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import (
    SATURATION,
    SEARCH,
    TRIAL,
    Measured,
    RunArguments,
    WindowRecord,
    is_throttled,
    is_void,
)
from racetrack.results.run import Window as Interval
from racetrack.run.descent import (
    QUANTILE,
    Descent,
    Sustained,
    Trial,
    TrialResult,
)
from racetrack.run.lifecycle import repeat_while_void
from racetrack.run.saturation import LOW_PER_S, ROWS_WITHIN_S, Saturation, SessionLoad, drain
from racetrack.terminal import Screen
from racetrack.units import BYTES_PER_GIB

# A backlog larger than this is drained before the next rate is set. It is given in seconds of load
# at that rate.
BACKLOG_S = 5.0
# A warm-up at saturation begins with a low rate for this long.
LOW_S = 10.0
# A scout begins with a low rate for this long, and measures the count's throughput in its last
# quarter, but for at least SCOUT_LEAST_S. Views may be seconds behind so soon after the start.
SCOUT_LOW_S, SCOUT_SHARE, SCOUT_LEAST_S = 2.0, 1 / 4, 10.0
NOT_DRAINED = "not measured: the engine did not drain the backlog of an earlier load in time"
# The lag is not checked more often, because each check reads all rows recorded so far.
CHECK_LAG_EVERY_S = 10.0
# A window that noise makes void moves on in such steps, by at most so many times its own length. On
# a machine with neighbours, that left 13 % of 398 windows void; measuring again for as long, 26 %.
MOVE_S, MOST_MOVED = 5.0, 3

OnRow = Callable[[Row], None]


@dataclass(frozen=True)
class PlannedWindow:
    """A window of a run: a load, or a whole phase if `load` is None. `per_s` is None while the
    capacity to which a share refers is unknown."""

    phase: Window | Saturate | Search
    load: PlannedLoad | None = None
    per_s: int | None = None
    is_trial: bool = False

    @property
    def share(self) -> float | None:
        """Share of the engine's own capacity; None for other loads."""
        return None if self.load is None or self.load.is_common else self.load.share

    @property
    def name(self) -> str:
        """Name, unique in the run."""
        if self.load is None:
            return SATURATION if isinstance(self.phase, Saturate) else SEARCH
        return f"{TRIAL if self.is_trial else ''}{TableLoad(self.per_s or 0, self.share)}"


@dataclass(frozen=True)
class Scouted:
    """Throughput that a scout measured, and why noise makes it void; None if it is valid."""

    per_s: float
    why_void: str | None


@dataclass(frozen=True)
class Known:
    """Knowledge of a run before it starts: windows that earlier folders of it contain, by name;
    the window at saturation on an earlier stack; when its first stack was started (monotonic
    clock), as if it had not been interrupted; what the broker uses without an engine; and the time
    of a read from memory in the quietest window of all runs."""

    windows: Mapping[str, WindowRecord]
    capacity: WindowRecord | None = None
    since_s: float = 0.0
    broker_alone: CostLine | None = None
    quiet_read_ns: float | None = None


def planned_windows(
    cell: Cell, own_per_s: float | None, slowest_per_s: float | None
) -> list[PlannedWindow]:
    """Return the windows of a run in its order, given the scouted throughput of its variant and of
    the slowest. Shares of the slowest that come to the same rate count once. A capacity that the
    run measures before a window replaces the scouted one."""
    planned: dict[str, PlannedWindow] = {}
    for phase in cell.phases:
        if isinstance(phase, Saturate | Search):
            whole = PlannedWindow(phase)
            planned.setdefault(whole.name, whole)
        if isinstance(phase, Window):
            for load in map(load_of, phase.loads):
                per_s = _rate(load, own_per_s, slowest_per_s)
                window = PlannedWindow(phase, load, per_s)
                planned.setdefault(window.name, window)
    return list(planned.values())


def _rate(load: PlannedLoad, own_per_s: float | None, slowest_per_s: float | None) -> int | None:
    if load.share and load.is_common and slowest_per_s:
        return rounded_down(load.share * slowest_per_s)
    if load.share and not load.is_common and own_per_s:
        return share_of(own_per_s, load.share)
    return load.per_s


def share_of(per_s: float, share: float) -> int:
    """Return the rate that is a share of a capacity."""
    return max(1, round(share * per_s))


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
    at: str,
    folder: RunFolder,
    on_row: OnRow,
) -> None:
    """Record the windows that a failed run did not measure. `known` are those of other folders, and
    `at` is the window in which the run failed; empty if it failed before the first."""
    there = {window.name for window in read_run(folder.path).windows}
    for window in planned:
        if window.name not in there and window.name not in known:
            later = f"not measured, since the run ended at {at}: {why}"
            keep(
                _not_reached(window, outcome=why if at in ("", window.name) else later),
                folder,
                on_row,
            )


class PhaseRun:
    """The phases of one run on one stack."""

    def __init__(
        self,
        cell: Cell,
        planned: Sequence[PlannedWindow],
        known: Known,
        load: SessionLoad,
        folder: RunFolder,
        settings: Settings,
        screen: Screen,
        guard: terminal.Guard,
        on_row: OnRow,
    ) -> None:
        self._cell, self._planned = cell, planned
        self._known, self._earlier, self._since_s = dict(known.windows), known, known.since_s
        self._load, self._session, self._folder = load, load.session, folder
        self._clock = load.session.clock
        self._settings, self._screen, self._guard, self._on_row = settings, screen, guard, on_row
        self._saturation: Saturation | None = None
        self._quiet_read_ns = known.quiet_read_ns
        self._cold = ""  # why the engine may not be warm
        self._warm_up_events: int | None = None  # those due before the first window of this stack
        self.at = ""  # name of the latest window
        # After the first warm-up, and after saturation.
        self._early_heap: LiveHeap | None = None
        self._late_heap: LiveHeap | None = None
        self.void_s = 0.0  # time spent on void windows
        self.without_room = False  # windows are left for another stack, whose heap is empty

    def carry_out(self) -> None:
        """Warm up, and measure the windows that are not known, in the order of the plan. One
        whose events would fill the heap too far is left for another stack (`without_room`).

        Raises:
            RacetrackError: a component of the stack failed.
        """
        for phase in self._cell.phases:
            if isinstance(phase, WarmUp):
                self._warm_up(phase)
            for window in self._planned:
                if window.phase is phase and window.name not in self._known:
                    self._measure(window)

    def scout(self, most_s: float) -> Scouted:
        """Measure the throughput at saturation within `most_s`, even if the engine is not warm
        then. Noise at any time makes it void, since the engine warms up more slowly then.

        Raises:
            RacetrackError: the engine was not saturated or counted nothing, or a component of the
                stack failed.
        """
        saturation, began_ms = Saturation(self._load, self._folder.path), self._clock.now_ms()
        last_s = max(SCOUT_LEAST_S, SCOUT_SHARE * most_s)
        saturation.warm_up(most_s, SCOUT_LOW_S, last_s)
        per_s = self._load.counted_per_s(self._last(last_s))
        if not per_s > 0:
            raise RacetrackError("The engine counted nothing at saturation.")
        whole = Interval(start_ms=began_ms, end_ms=self._clock.now_ms())
        return Scouted(per_s, self._noise(whole)[1])

    def measure_input(self, rates: Sequence[int], for_s: float) -> list[InputAlone]:
        """Measure what the broker uses at these rates, once it is warm; the engine of this run only
        reads the input.

        Raises:
            RacetrackError: a component of the stack failed.
        """
        measured = []
        phase = Window(window=for_s, settle=INPUT_SETTLE_S)
        self._load.set_rate(sorted(rates)[len(rates) // 2])
        self._session.watch(INPUT_WARM_UP_S, "warming up")
        for per_s in sorted(rates, reverse=True):
            window = PlannedWindow(phase, load_of(str(per_s)), per_s)
            made = self._at_rate(window, phase, per_s)
            sent_per_s, broker_pct = (
                made.figures.get(metric.key) for metric in (ACHIEVED, BROKER_CPU)
            )
            is_usable = not is_void(made.outcome) and is_offered(per_s, made.figures, made.verdict)
            if is_usable and sent_per_s and broker_pct is not None:
                measured.append(InputAlone(per_s=sent_per_s, broker_cpu_pct=broker_pct))
        return measured

    def _warm_up(self, phase: WarmUp) -> None:
        self._offer_warm_up(phase)
        if phase is self._cell.phases[0] and any(
            isinstance(p, Saturate) for p in self._cell.phases
        ):
            self._early_heap = self._live_heap(is_last=False)

    def _live_heap(self, *, is_last: bool) -> LiveHeap | None:
        gib = self._session.engine_heap(is_last=is_last)
        return None if gib is None else LiveHeap(self._load.sample().counted, gib)

    def _full_after_min(self, capacity_per_s: float) -> float | None:
        """Return when the heap is full at half of the capacity. Read the engine's live heap, unless
        it was not read at first."""
        self._late_heap = self._early_heap and self._live_heap(is_last=True)
        if not (self._early_heap and self._late_heap):
            return None
        size = heap_of(self._cell.engine, self._settings).size / BYTES_PER_GIB
        return full_after_min(self._early_heap, self._late_heap, size, capacity_per_s / 2)

    def _heap(self) -> Heap:
        """Return the engine's heap. An event needs what the live objects grew by until the end of
        saturation, on this or an earlier stack, if that is more than the engine states."""
        heap = heap_of(self._cell.engine, self._settings)
        grown = 0.0
        if self._early_heap and self._late_heap:
            size_gib = heap.size / BYTES_PER_GIB
            grown = gib_per_event(self._early_heap, self._late_heap, size_gib) * BYTES_PER_GIB
        elif capacity := self._earlier.capacity:
            minutes = capacity.figures.get(MEMORY_FULL_AFTER.key, math.inf)
            events = events_until_full(minutes, capacity.figures[CAPACITY.key])
            grown = heap.size / events if events else 0.0  # as if it had been empty at first
        return replace(heap, per_event=max(heap.per_event, grown))

    def _offer_warm_up(self, phase: WarmUp) -> None:
        if phase.at == "saturation":
            warm = self._saturate_from(phase.start).warm_up(phase.for_s, LOW_S)
            cold = f"CPU time per event was not flat after {warm.took_s:.0f} s of warm-up"
            self._cold = "" if warm.is_warm else cold
            return
        per_s = (min if phase.at == "lowest" else max)(self._rates(phase))
        self._load.set_rate(per_s)
        self._session.watch(phase.for_s, "warming up")
        drain(self._load, per_s)  # a cold engine may have fallen behind

    def _rates(self, phase: Phase) -> list[int]:
        """Return the known rates of this stack. A capacity that was measured before a phase
        replaces the scouted one."""
        capacity_per_s = self._capacity_per_s_before(phase)
        rates = (
            share_of(capacity_per_s, window.share)
            if capacity_per_s and window.share
            else window.per_s
            for window in self._planned
        )
        return [per_s for per_s in rates if per_s is not None] or [LOW_PER_S]

    def _saturate_from(self, start_per_s: int) -> Saturation:
        """Return the saturation of this run, which continues one that a warm-up began."""
        if not self._saturation:
            self._saturation = Saturation(self._load, self._folder.path, start_per_s)
        return self._saturation

    def _measure(self, window: PlannedWindow) -> None:
        phase, self.at = window.phase, window.name
        if isinstance(phase, Saturate):
            self._kept(partial(self._at_saturation, window, phase))
            return
        capacity, own_per_s = self._capacity_before(phase), self._capacity_per_s_before(phase)
        if isinstance(phase, Search):
            self._search(phase, _required(own_per_s, window))
            return
        if window.share and (own_per_s or window.per_s is None):
            capacity_per_s = _required(own_per_s, window)
            window = replace(window, per_s=share_of(capacity_per_s, window.share))
        is_above = own_per_s is not None and own_per_s < (window.per_s or 0)
        if is_above and not (capacity and capacity.at_least):
            remark = "(not offered, since it is above the capacity)"
            self._keep(_not_reached(window, verdict=str(VerdictKind.FELL_BEHIND), remark=remark))
        else:
            self._offered(window, phase)

    def _offered(
        self, window: PlannedWindow, phase: Window, bound_ms: float = math.inf
    ) -> WindowRecord | None:
        """Measure a window at a rate, or say why its events have no room. Return None if they have
        room on another stack only (`without_room`)."""
        per_s = window.per_s or 0
        room = self._room(phase, per_s)
        if room == "elsewhere":
            self.without_room = True
            return None
        if room != "here":
            made = _not_reached(window, outcome=room)
            self._keep(made)
            return made
        once = partial(self._kept, partial(self._at_rate, window, phase, per_s, bound_ms))
        if not window.is_trial:
            return once()
        drain(self._load, per_s)
        return repeat_while_void(once, _why_void, self._screen, self._guard)

    def _room(self, phase: Window, per_s: int) -> str:
        """Return where the events of a load have room on the engine's heap: `here`, or `elsewhere`
        if an emptier heap would disturb less; or why they have none."""
        heap = self._heap()
        events, due = per_s * (phase.settle_s + phase.for_s), self._load.sample().due
        warm_up = self._warm_up_events
        if due + events <= (heap.most_events if warm_up is None else heap.unmarked_events):
            return "here"
        if warm_up is not None and warm_up + events <= heap.most_events:
            return "elsewhere"
        needed, size = (
            size_bytes / BYTES_PER_GIB
            for size_bytes in ((due + events) * heap.per_event, heap.size)
        )
        return f"not offered: events would need {needed:.1f} GiB of a heap of {size:.1f} GiB"

    def _capacity_before(self, phase: Phase) -> WindowRecord | None:
        """Return the window at saturation that the plan has before a phase, on this or an earlier
        stack."""
        before = takewhile(lambda other: other is not phase, self._cell.phases)
        is_measured_here = any(isinstance(other, Saturate) for other in before)
        return self._known.get(SATURATION) if is_measured_here else self._earlier.capacity

    def _capacity_per_s_before(self, phase: Phase) -> float | None:
        capacity = self._capacity_before(phase)
        return capacity.figures.get(CAPACITY.key) if capacity else None

    def _kept(self, once: Callable[[], WindowRecord]) -> WindowRecord:
        """Measure a window by `once`, and write it into `run.json`."""
        began_s, void_s = self._clock.monotonic(), self.void_s
        if self._warm_up_events is None:
            self._warm_up_events = self._load.sample().due
        made = once()
        self._keep(made)
        if is_void(made.outcome):
            self.void_s = void_s + self._clock.monotonic() - began_s
        return made

    def _moved(self, within: Interval, go_on: Callable[[float], None]) -> Interval:
        """Move a window on while noise makes it void. `go_on` holds the load for some seconds."""
        began_ms, moved_ms, moved = self._clock.now_ms(), 0, within
        while (
            (why := self._disturbance(moved))
            and not is_throttled(why)
            and moved_ms < 1000 * MOST_MOVED * within.seconds
        ):
            if not moved_ms:
                self._screen.heading(f"{why} The window moves on until it is quiet")
            go_on(MOVE_S)
            moved_ms = self._clock.now_ms() - began_ms
            moved = Interval(start_ms=within.start_ms + moved_ms, end_ms=within.end_ms + moved_ms)
        self.void_s += moved_ms / 1000
        return moved

    def _keep(self, made: WindowRecord) -> None:
        if not is_void(made.outcome):
            self._known[made.name] = made
        keep(made, self._folder, self._on_row)

    def _at_rate(
        self, window: PlannedWindow, phase: Window, per_s: int, bound_ms: float = math.inf
    ) -> WindowRecord:
        """Measure a window at a rate. It ends early if the lag has exceeded a bound for so long
        that its p99 can no longer be within the bound."""
        was_saturated = self._saturation is not None and self._saturation.end()
        is_behind = was_saturated or self._load.sample().waiting > BACKLOG_S * per_s
        if is_behind and not drain(self._load, per_s):
            return _not_reached(window, outcome=NOT_DRAINED)
        rate_set_ms = self._clock.now_ms()
        self._load.set_rate(per_s)
        self._session.watch(phase.settle_s, "settling")
        start_ms = self._clock.now_ms()
        is_late = self._watch(phase.for_s, start_ms, bound_ms)
        within = Interval(start_ms=start_ms, end_ms=self._clock.now_ms())
        self._session.watch(ROWS_WITHIN_S, "measuring")
        if math.isinf(bound_ms):
            within = self._moved(within, lambda s: self._session.watch(s, "measuring"))
        self._session.sample_memory()
        made = self._at(window, phase, per_s, within, rate_set_ms)
        if is_late:
            made.at_least = tuple(
                metric.key for metric in (LAG_P99, VIEW_LAG_P99) if metric.key in made.figures
            )
            late = f"stopped, since the lag was above {bound_ms / 1000:.3g} s for too long"
            made.remark = "; ".join(filter(None, [late, made.remark]))
        return made

    def _watch(self, for_s: float, start_ms: int, bound_ms: float) -> bool:
        """Watch a window; return whether it was ended because the lag exceeded the bound."""
        if math.isinf(bound_ms):
            self._session.watch(for_s, "measuring")
            return False
        end_s = self._clock.monotonic() + for_s
        while (left_s := end_s - self._clock.monotonic()) > 0:
            self._session.watch(min(CHECK_LAG_EVERY_S, left_s), "watching the lag")
            now_ms = self._clock.now_ms()
            above_s = max(_above_s(lag, start_ms, now_ms, bound_ms) for lag in self._load.lags())
            if above_s > (1 - QUANTILE) * for_s:
                return True
        return False

    def _at(
        self, window: PlannedWindow, phase: Window, per_s: int, within: Interval, rate_set_ms: int
    ) -> WindowRecord:
        """Return the figures of a window, computed as for a run that has only this window."""
        record = read_run(self._folder.path)
        record.arguments = RunArguments(
            events_per_s=per_s, wait_s=phase.settle_s, samples=1, delay_s=1.0
        )
        record.measured = Measured(window=within, rate_set_ms=rate_set_ms, cpu_s={})
        record.results = figures.results_of(self._folder.path, record)
        values = windows.values(record)
        return WindowRecord(
            name=window.name,
            per_s=per_s,
            share=window.share,
            start_ms=within.start_ms,
            end_ms=within.end_ms,
            rate_set_ms=rate_set_ms,
            outcome=outcome.run_outcome(record, slow=self._why_slow(values.get(MEMORY_READ.key))),
            verdict=str(record.results.verdict.kind),
            remark=limits.busy_cores(self._folder.path, record, within),
            figures=values | windows.broker_for_engine(values, self._earlier.broker_alone),
        )

    def _why_slow(self, read_ns: float | None) -> str | None:
        """Return why a window is void because the machine was slow; None if it is valid."""
        self._quiet_read_ns = shorter_ns(self._quiet_read_ns, read_ns)
        return why_slow(read_ns, self._quiet_read_ns, Gate.of(for_record(self._settings)))

    def _at_saturation(self, window: PlannedWindow, phase: Saturate) -> WindowRecord:
        """Measure the capacity. If the engine fails during the measurement, for example because it
        runs out of memory, the throughput until then is a lower bound of the capacity.

        Raises:
            RacetrackError: the engine failed before there was any throughput at saturation.
        """
        began_ms = self._clock.now_ms()
        try:
            saturation = self._saturate_from(max(self._rates(phase)))
            within = saturation.measure(phase.for_s, phase.hold_s)
            within = self._moved(within, saturation.go_on)
        except RacetrackError as error:
            within_s = min(phase.for_s, (self._clock.now_ms() - began_ms) / 1000)
            with suppress(RacetrackError):  # too few updates; the failure itself is raised below
                work = self._work_of_last(within_s, phase.batch_s)
                if work.work.per_s > 0:
                    why = f"it ended: {error}"
                    self._keep(self._capacity(window, self._last(within_s), work, why))
            raise
        work = self._load.work(within, phase.batch_s)
        made = self._capacity(window, within, work, self._load.limited_by(within, work))
        if (minutes := self._full_after_min(work.work.per_s)) is not None:
            made.figures[MEMORY_FULL_AFTER.key] = minutes
        return made

    def _capacity(
        self, window: PlannedWindow, within: Interval, work: MeasuredWork, bound: str
    ) -> WindowRecord:
        noise, void = self._noise(within)
        read_ns = noise.memory_read_ns if noise else None
        cpu_s = self._load.cpu_s_per_million(within, work)
        services = read_run(self._folder.path).engine_services
        known = {
            CAPACITY.key: work.work.per_s,
            SATURATED_COST.key: sum(cpu_s.get(service, 0.0) for service in services) or None,
            IDLE_SHARE.key: 100 * work.work.idle_share,
            SATURATED_BROKER.key: windows.beyond_input(
                work.work.per_s, cpu_s.get("broker"), self._earlier.broker_alone
            ),
            MEMORY_READ.key: read_ns,
        }
        values = {key: value for key, value in known.items() if value is not None}
        slowest = f"the view {work.view} was slowest" if work.view else ""
        return WindowRecord(
            name=window.name,
            start_ms=within.start_ms,
            end_ms=within.end_ms,
            outcome=void or self._why_slow(read_ns) or "ok",
            figures=values,
            at_least=(CAPACITY.key,) if bound else (),
            remark="; ".join(filter(None, [bound, slowest, self._cold])),
        )

    def _noise(self, within: Interval) -> tuple[NoiseFigures | None, str | None]:
        """Return the noise of an interval, and why the interval is void because of it."""
        noise = over(raw.noise(self._folder.path), within.start_ms, within.end_ms)
        quotas = read_run(self._folder.path).machine.cpu_quotas
        return noise, why_void(noise, Gate.of(for_record(self._settings)), quotas)

    def _disturbance(self, within: Interval) -> str | None:
        """Return why noise makes a window void; None if it is valid."""
        noise, void = self._noise(within)
        return void or self._why_slow(noise.memory_read_ns if noise else None)

    def _last(self, seconds: float) -> Interval:
        now_ms = self._clock.now_ms()
        return Interval(start_ms=now_ms - round(1000 * seconds), end_ms=now_ms)

    def _work_of_last(self, seconds: float, batch_s: float) -> MeasuredWork:
        return self._load.work(self._last(seconds), batch_s)

    def _search(self, phase: Search, capacity_per_s: float) -> None:
        """Try shares of the capacity until the highest that is sustained within each bound is
        known, or the time is over, or the next one is left for another stack."""
        bounds_ms = [1000 * bound_s for bound_s in phase.bounds_s]
        descent, start_ms, voids = Descent(bounds_ms), self._clock.now_ms(), list[str]()
        drain(self._load, round(capacity_per_s))
        while trial := descent.wanted():
            window, at = _trial_window(trial, phase, capacity_per_s)
            if not (made := self._known.get(window.name)):
                if not self._has_time_for_trial(phase):
                    break
                if not (made := self._offered(window, at, trial.bound_ms)):
                    return
                if is_void(made.outcome):
                    voids.append(made.outcome)
                    break
            descent.take(trial.share, _result(made))
        rates = [descent.sustained(bound_ms) for bound_ms in sorted(bounds_ms)]
        over = f"no time for more trials within {phase.within_s / 60:g} min"
        is_over = not voids and descent.wanted() is not None
        texts = [_describe(rate, capacity_per_s) for rate in rates]
        self._keep(
            WindowRecord(
                name=SEARCH,
                start_ms=start_ms,
                end_ms=self._clock.now_ms(),
                outcome=next(iter(voids), "ok"),
                figures={
                    sustained(rate.bound_ms).key: share_of(capacity_per_s, rate.share)
                    for rate in rates
                    if rate.share
                },
                at_least=tuple(sustained(rate.bound_ms).key for rate in rates if not rate.is_final),
                remark="; ".join([*texts, *([over] if is_over else [])]),
            )
        )

    def _has_time_for_trial(self, phase: Search) -> bool:
        """Return whether another trial and the phases after the search fit in the time. The time of
        void windows does not count."""
        later = self._cell.phases[self._cell.phases.index(phase) + 1 :]
        needed_s = DRAIN_S + phase.settle_s + phase.trial_s + sum(map(phase_s, later))
        used_s = self._clock.monotonic() - self._since_s - self.void_s
        return used_s + needed_s <= phase.within_s


def _why_void(made: WindowRecord) -> str | None:
    return made.outcome if is_void(made.outcome) else None


def _result(made: WindowRecord) -> TrialResult:
    """Return the result of a trial: the lag of the slowest view; without traced views, the lag of
    the engine's count."""
    p99_ms = made.figures.get(VIEW_LAG_P99.key, made.figures.get(LAG_P99.key, math.inf))
    if made.at_least:
        p99_ms = math.inf
    was_offered = made.outcome == "ok" and is_offered(made.per_s or 0, made.figures, made.verdict)
    return TrialResult(p99_ms, was_offered)


def _required(per_s: float | None, window: PlannedWindow) -> float:
    if per_s is None:
        raise RacetrackError(f"{window.name}: the engine's capacity is unknown.")
    return per_s


def _trial_window(
    trial: Trial, phase: Search, capacity_per_s: float
) -> tuple[PlannedWindow, Window]:
    at = Window(window=phase.trial_s, settle=phase.settle_s)
    load = load_of(f"{100 * trial.share:g}%")
    return PlannedWindow(at, load, share_of(capacity_per_s, trial.share), is_trial=True), at


def _describe(reached: Sustained, capacity_per_s: float) -> str:
    """Return the result of a search for one bound as text."""
    within = f"{reached.bound_ms / 1000:g} s"
    failed = f"{share_of(capacity_per_s, reached.failed):,}/s" if reached.failed else ""
    if not reached.share:
        return f"lag p99 within {within} at no rate tried{f', not at {failed}' if failed else ''}"
    rate = f"{share_of(capacity_per_s, reached.share):,}/s"
    return f"lag p99 within {within} at {rate}{f', not at {failed}' if failed else ''}"


def _above_s(curve: Curves, start_ms: int, until_ms: int, bound_ms: float) -> float:
    """Return for how many seconds the lag has exceeded a bound since `start_ms`."""
    aged = age(curve, start_ms, until_ms)
    above_ms = aged.until_ms - np.maximum(aged.from_ms, aged.oldest_ms + bound_ms)
    return float(np.maximum(above_ms, 0).sum()) / 1000


def _not_reached(window: PlannedWindow, **values: str) -> WindowRecord:
    return WindowRecord(
        name=window.name,
        per_s=window.per_s,
        share=window.share,
        **values,  # type: ignore[arg-type]
    )
