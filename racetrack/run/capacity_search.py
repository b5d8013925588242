"""Capacity search: measures an engine's capacity, and the highest rates at which its lag stays
within bounds."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeVar

from racetrack import engines, host, terminal
from racetrack.analysis import raw
from racetrack.analysis.capacity import Work
from racetrack.analysis.noise import core_speed, why_window_is_void
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.clock import SYSTEM_CLOCK, Clock
from racetrack.config import Settings, for_record
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder, named_folder, read_run, write_record
from racetrack.results.run import RunArguments, Window
from racetrack.results.search import (
    LimitRecord,
    LimitRun,
    RateTrial,
    SaturationWindow,
    SearchArguments,
    effective_bound_ms,
)
from racetrack.run import loads, search, search_texts, trials
from racetrack.run.checks import make_ready, require_raced_on, services_of
from racetrack.run.lifecycle import OpenSession, repeat_while_void, started_session
from racetrack.run.loads import Load
from racetrack.run.session import Session
from racetrack.run.trials import DURATIONS, PhaseDurations, Saturation
from racetrack.stack.contract import Stack
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen

OpenStack = Callable[..., Stack]
WhyVoid = Callable[..., str | None]
Watched = TypeVar("Watched", SaturationWindow, RateTrial)


class CapacitySearch:
    """A capacity search of one engine. It writes `<time>_UTC_<engine>_limit/limit.json` next to the
    folders of its runs."""

    def __init__(
        self,
        engine_name: str,
        settings: Settings,
        screen: Screen,
        guard: terminal.Guard,
        durations: PhaseDurations = DURATIONS,
        start_per_s: int | None = None,
        *,
        find_engine: Callable[[str], Engine] = engines.find_engine,
        open_stack: OpenStack = open_stack,
        open_session: OpenSession = Session,
        why_void: WhyVoid = why_window_is_void,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._durations = durations
        self._open_stack, self._open_session, self._clock = open_stack, open_session, clock
        self.why_void = why_void
        self._start_per_s = start_per_s or loads.START_PER_S
        self._engine = find_engine(engine_name)
        require_raced_on(self._engine, settings)
        settings = loads.settings_for(settings)
        self._settings, self._screen, self._guard = settings, screen, guard
        runtime = open_stack(settings, services_of(self._engine, settings), lambda _: None).runtime
        self.folder = named_folder(settings.logs_folder, f"{engine_name}_limit")
        self.record = LimitRecord(
            engine=engine_name,
            runtime=runtime,
            machine=host.describe(),
            settings=for_record(settings),
            arguments=SearchArguments(
                start_per_s=self._start_per_s,
                warm_up_s=durations.warm_up_most_s,
                within_s=durations.within_s,
                bounds_ms=durations.bounds_ms,
            ),
        )
        self._began_s = self._clock.monotonic()
        self._void_s = 0.0  # time spent on void windows; does not count towards the time limit
        self._void: str | None = None  # why a window used in the result is void
        self._stack: Stack | None = None  # stack of the latest run

    def run(self) -> LimitRecord:
        """Search, and return the record. If the second run fails, the record contains the results
        measured before.

        Raises:
            RacetrackError: the first run failed, so there is no result.
            Interrupted: a signal was received. `limit.json` contains the results measured so far.
        """
        self._write("unfinished")
        try:
            found = search.find(self, self._durations.bounds_ms)
        except RacetrackError as error:
            self._write(str(error))
            raise
        self._write(self._record(found))
        if self._stack:
            self._stack.speed_up_next_start(self._screen.say)
        return self.record

    @contextmanager
    def fresh(self) -> Iterator["MeasuredRun"]:
        """Start the stack, load the engine's demo script, and warm up the engine; stop the stack at
        the end of the context."""
        self._screen.heading(f"== run {len(self.record.runs) + 1} of {search.RUNS}")
        stack = self._open_stack(
            self._settings, services_of(self._engine, self._settings), self._screen.say
        )
        self._stack = stack
        self.record.data_in_memory = stack.data_in_memory
        make_ready(self._engine, stack, self._screen.say)
        folder = RunFolder.create(self._settings.logs_folder, self._engine.name, "limited")
        arguments = RunArguments(
            pageviews_per_s=self._start_per_s,
            wait_s=self._durations.settle_s,
            samples=1,
            delay_s=1.0,
        )
        run = LimitRun(tag=folder.tag)
        self.record.runs = (*self.record.runs, run)
        started = started_session(
            self._engine, stack, folder, arguments, self._screen, self._guard, self._open_session
        )
        try:
            with started as session:
                load = Load(session, folder.path, self._settings)
                saturation = Saturation(load, folder.path, self._start_per_s, self._durations)
                self.record.machine = read_run(folder.path).machine  # with quotas of containers
                warm = saturation.warm_up()
                run.warm_up_s, run.is_warm = warm.took_s, warm.is_warm
                yield MeasuredRun(self, load, folder, run, saturation)
        finally:
            self._guard.rearm()

    def has_time_for_trial(self) -> bool:
        """See `search.Runs`. The time of void windows does not count."""
        return self._durations.has_time_for_trial(
            self._clock.monotonic() - self._began_s - self._void_s
        )

    def not_void(
        self,
        once: Callable[[], Watched],
        keep: Callable[[Watched], None],
        describe: Callable[[Watched], str],
    ) -> Watched:
        """Measure a window, and repeat the measurement while the window is void (disturbed by other
        programs). Record and print each result."""

        def watch() -> Watched:
            began_s = self._clock.monotonic()
            made = once()
            keep(made)
            self._screen.say(f"  {describe(made)}")
            if made.void:
                self._void_s += self._clock.monotonic() - began_s
            self._write("unfinished")
            return made

        made = repeat_while_void(watch, lambda made: made.void, self._screen, self._guard)
        self._void = made.void or self._void
        return made

    def _record(self, found: search.Found | None) -> str:
        """Write the result of the search into the record; return the outcome."""
        if not found:
            idle = self.record.runs[-1].saturation[-1]
            return (
                f"its capacity is unknown: it was idle for {100 * idle.idle_share:.0f} % of the"
                f" time, because generator and broker reached only {idle.handed_over_per_s:,.0f}/s"
            )
        self.record.capacity, self.record.sustainable = found.capacity, found.sustained
        if found.failed:
            failed = (
                "its second run failed, so the capacity rests on the first run alone:"
                f" {found.failed}"
            )
            return f"{self._void} And {failed}" if self._void else failed
        if self._void:
            return self._void
        if found.is_whole:
            return "ok"
        return f"no time for more rate trials within {self._durations.within_s / 60:g} min"

    def _write(self, outcome: str) -> None:
        self.record.outcome = outcome
        self.record.minutes = round((self._clock.monotonic() - self._began_s) / 60, 1)
        write_record(self.folder / "limit.json", self.record)


class MeasuredRun:
    """`search.FreshRun` on a real stack. Every result is written into the record."""

    def __init__(
        self,
        of: CapacitySearch,
        load: Load,
        folder: RunFolder,
        record: LimitRun,
        saturation: Saturation,
    ) -> None:
        self._of, self._load, self._folder, self._record = of, load, folder, record
        self._saturation, self._durations = saturation, saturation.durations

    def work(self) -> Work:
        """See `search.FreshRun.work`."""

        def keep(made: SaturationWindow) -> None:
            self._record.saturation = (*self._record.saturation, made)

        made = self._of.not_void(self._saturate, keep, search_texts.describe_saturation)
        return Work(made.batches_per_s, made.backlog_min_s, made.backlog_max_s, made.idle_share)

    def try_rate(self, per_s: int, bound_ms: float) -> search.TrialResult:
        """See `search.FreshRun.try_rate`."""

        def keep(made: RateTrial) -> None:
            self._record.trials = (*self._record.trials, made)

        made = self._of.not_void(
            lambda: self._try_rate(per_s, bound_ms), keep, search_texts.describe_trial
        )
        is_offered = made.handed_over_per_s >= per_s * (1 - RATE_TOLERANCE)
        p99_ms = math.inf if made.ended_early else made.lag_p99_ms
        return search.TrialResult(p99_ms, self._update_interval_ms, is_offered)

    def _why_void(self, noise: Sequence[raw.NoiseRow], window: Window) -> str | None:
        record = self._of.record
        return self._of.why_void(noise, window, record.settings, record.machine.cpu_quotas)

    @property
    def _update_interval_ms(self) -> float:
        return self._record.update_interval_ms or 0.0

    def _saturate(self) -> SaturationWindow:
        window = self._saturation.measure()
        worked = self._load.work(window, self._durations.batch_s)
        noise = raw.noise(self._folder.path)
        return SaturationWindow(
            window=window,
            counted_before=self._load.counted_by(window.start_ms),
            **asdict(worked.work),
            view=worked.view,
            handed_over_per_s=self._load.handed_over_per_s(window),
            cpu_s_per_million=self._load.cpu_s_per_million(window, worked),
            core=core_speed(noise, window.start_ms, window.end_ms),
            void=self._why_void(noise, window),
        )

    def _try_rate(self, per_s: int, bound_ms: float) -> RateTrial:
        drained = trials.drain(self._load, per_s)
        if self._record.update_interval_ms is None:
            self._record.update_interval_ms = self._saturation.update_interval_ms()
        within_ms = effective_bound_ms(bound_ms, self._update_interval_ms)
        lag = trials.try_rate(self._load, per_s, within_ms, self._durations)
        noise = raw.noise(self._folder.path)
        return RateTrial(
            per_s=per_s,
            bound_ms=within_ms,
            drained=drained,
            counted_before=self._load.counted_by(lag.window.start_ms),
            **asdict(lag),
            core=core_speed(noise, lag.window.start_ms, lag.window.end_ms),
            void=self._why_void(noise, lag.window),
        )
