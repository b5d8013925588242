"""An engine's limit: its capacity, and the highest rate at which its lag stays within a bound."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from racetrack import engines, interrupts, machine
from racetrack.analysis import raw
from racetrack.analysis.capacity import Work
from racetrack.analysis.moments import moments
from racetrack.analysis.noise import core_speed, why_window_is_void
from racetrack.analysis.outcome import RATE_TOLERANCE
from racetrack.analysis.spent import cpu_s_per_million
from racetrack.errors import RacetrackError
from racetrack.json_file import write_json
from racetrack.limit_record import (
    PAGEVIEWS,
    AtRate,
    Capacity,
    LimitRecord,
    LimitRun,
    Overloaded,
    SustainableRate,
    widened_ms,
)
from racetrack.report import limits
from racetrack.run import loads, phases, search
from racetrack.run.experiment import describe_run
from racetrack.run.loads import Load
from racetrack.run.phases import PACE, Overload, Pace
from racetrack.run.readiness import make_ready, require_raced_on, services_of
from racetrack.run.session import Session
from racetrack.run.single import repeat_while_void
from racetrack.run_record import RunArguments
from racetrack.runfolder import RunFolder, named_folder
from racetrack.screen import Screen
from racetrack.settings import Settings, for_record
from racetrack.stack.runtime import open_stack

Watched = TypeVar("Watched", Overloaded, AtRate)


def settings_to_search(engine_name: str, settings: Settings, of: str) -> Settings:
    """The settings of a search for this limit.

    Raises:
        UsageError: this engine can't be searched for it.
    """
    engine = engines.find_engine(engine_name)
    require_raced_on(engine, settings)
    return loads.settings_for(of, engine, settings)


class LimitSearch:
    """One search; leaves `logs/<stamp>_UTC_<engine>_limit/limit.json` beside the runs it made."""

    def __init__(
        self,
        engine_name: str,
        settings: Settings,
        screen: Screen,
        guard: interrupts.Guard,
        pace: Pace = PACE,
        start_per_s: int | None = None,
        of: str = PAGEVIEWS,
    ) -> None:
        self._pace, self._of = pace, of
        self._start_per_s = start_per_s or loads.kind_of(of).start_per_s
        self._engine = engines.find_engine(engine_name)
        settings = settings_to_search(engine_name, settings, of)
        self._settings, self._screen, self._guard = settings, screen, guard
        runtime = open_stack(settings, services_of(self._engine, settings), lambda _: None).runtime
        self.folder = named_folder(settings.logs_folder, f"{engine_name}_limit")
        self.record = LimitRecord(
            engine=engine_name,
            of=of,
            runtime=runtime,
            machine=machine.describe(),
            settings=for_record(settings),
        )
        self._began_s = time.monotonic()
        self._spoilt_s = 0.0  # by others; it is not the search's
        self._void: str | None = None  # why what counts is

    def run(self) -> LimitRecord:
        """Search.

        Raises:
            RacetrackError: the first run failed, so that nothing can be said.
            Interrupted: by a signal. Either way, what was seen so far stands in `limit.json`.
        """
        self._write("unfinished")
        try:
            found = search.find(self, self._pace.bounds_ms)
        except RacetrackError as error:
            self._write(str(error))
            raise
        self._write(self._took_in(found))
        return self.record

    @contextmanager
    def fresh(self) -> Iterator["MeasuredRun"]:
        """The stack started for one run, the demo loaded, the engine warmed up; stopped again,
        however that ends."""
        self._screen.heading(f"== run {len(self.record.runs) + 1} of {search.RUNS}")
        stack = open_stack(
            self._settings, services_of(self._engine, self._settings), self._screen.say
        )
        make_ready(self._engine, stack, self._screen.say)
        folder = RunFolder.create(self._settings.logs_folder, self._engine.name, "limited")
        pageviews_per_s = (
            self._start_per_s
            if self._of == PAGEVIEWS
            else int(self._settings.pageviews_per_second_start)
        )
        asked = RunArguments(
            pageviews_per_s=pageviews_per_s, wait_s=self._pace.settle_s, samples=1, delay_s=1.0
        )
        describe_run(folder, self._engine, stack, asked)
        run = LimitRun(tag=folder.tag)
        self.record.runs = (*self.record.runs, run)
        session = Session(self._engine, stack, folder, self._screen, 1.0)
        outcome = "unfinished"
        try:
            with interrupts.unwrapped():
                session.start_stack()
                session.run_demo()
                load = loads.load_of(self._of, session, folder.path, self._settings)
                overload = Overload(load, folder.path, self._start_per_s, self._pace)
                warm = overload.warm_up()
                run.warm_up_s, run.is_warm = warm.took_s, warm.is_warm
                services = self._engine.services_in(self._settings)
                logs = [stack.log_of(service) for service in services]
                yield MeasuredRun(self, load, folder, run, overload, logs)
            outcome = "ok"
        except BaseException as error:
            outcome = str(error) or repr(error)
            raise
        finally:
            self._guard.disarm()
            with folder.recording() as record:
                record.outcome = outcome
            session.stop()
            self._guard.rearm()

    def has_time_to_hold(self) -> bool:
        """As the pace has it."""
        return self._pace.has_time_to_hold(time.monotonic() - self._began_s - self._spoilt_s)

    def not_void(
        self,
        once: Callable[[], Watched],
        keep: Callable[[Watched], None],
        say: Callable[[Watched], str],
    ) -> Watched:
        """What was watched, and again while others use the machine; kept and said each time."""

        def watch() -> Watched:
            began_s = time.monotonic()
            seen = once()
            keep(seen)
            self._screen.say(f"  {say(seen)}")
            if seen.void:
                self._spoilt_s += time.monotonic() - began_s
            self._write("unfinished")
            return seen

        seen = repeat_while_void(watch, lambda made: made.void, self._screen, self._guard)
        self._void = seen.void or self._void
        return seen

    def _took_in(self, found: search.Found | None) -> str:
        """Into the record; the outcome."""
        if not found:
            idle = self.record.runs[-1].overloaded[-1]
            return (
                "its capacity is not known: for"
                f" {100 * idle.idle_share:.0f} % of the time it had nothing to do, since generator"
                f" and broker gave it no more than {idle.handed_over_per_s:,.0f}/s"
            )
        self.record.capacity = Capacity(
            per_s=found.capacity.per_s, low=found.capacity.low, high=found.capacity.high
        )
        self.record.sustainable = tuple(
            SustainableRate(
                bound_ms=one.bound_ms,
                held_per_s=one.held,
                failed_per_s=one.failed,
            )
            for one in found.sustained
        )
        if found.failed:
            failed = (
                "its second run ended before its work was measured, so that the capacity is that of"
                f" its first alone: {found.failed}"
            )
            return f"{self._void} And {failed}" if self._void else failed
        if self._void:
            return self._void
        if found.is_whole:
            return "ok"
        within_min = self._pace.within_min
        return f"no more rates fitted into {within_min:g} minute{'' if within_min == 1 else 's'}"

    def _write(self, outcome: str) -> None:
        self.record.outcome = outcome
        self.record.minutes = round((time.monotonic() - self._began_s) / 60, 1)
        write_json(self.folder / "limit.json", self.record.model_dump(mode="json"))


class MeasuredRun:
    """One fresh run, as the search asks for it; all that it saw goes into the record."""

    def __init__(
        self,
        of: LimitSearch,
        load: Load,
        folder: RunFolder,
        record: LimitRun,
        overload: Overload,
        engine_logs: Sequence[Path],
    ) -> None:
        self._of, self._load, self._folder, self._record = of, load, folder, record
        self._overload, self._pace, self._logs = overload, overload.pace, engine_logs

    def work(self) -> Work:
        """What it works when there is always more to do."""

        def keep(seen: Overloaded) -> None:
            self._record.overloaded = (*self._record.overloaded, seen)

        seen = self._of.not_void(self._overloaded, keep, limits.overloaded_in_words)
        return Work(seen.batches_per_s, seen.youngest_s, seen.oldest_s, seen.idle_share)

    def hold(self, per_s: int, bound_ms: float) -> search.Held:
        """A rate, begun without a backlog."""

        def keep(seen: AtRate) -> None:
            self._record.rates = (*self._record.rates, seen)

        seen = self._of.not_void(
            lambda: self._at_rate(per_s, bound_ms), keep, limits.at_rate_in_words
        )
        is_offered = seen.handed_over_per_s >= per_s * (1 - RATE_TOLERANCE)
        p99_ms = math.inf if seen.broken_off else seen.lag_p99_ms
        return search.Held(p99_ms, self._cycle_ms, is_offered)

    @property
    def _cycle_ms(self) -> float:
        return self._record.cycle_ms or 0.0

    def _overloaded(self) -> Overloaded:
        window = self._overload.measure()
        try:
            worked = self._load.work(window, self._pace.batch_s)
        except ValueError as error:
            raise RacetrackError(f"Its capacity can't be told: {error}.") from error
        noise = raw.noise(self._folder.path)
        return Overloaded(
            window=window,
            counted_before=self._load.counted_by(window.start_ms),
            batches_per_s=worked.work.batches_per_s,
            youngest_s=worked.work.youngest_s,
            oldest_s=worked.work.oldest_s,
            idle_share=worked.work.idle_share,
            view=worked.view,
            waited=dict(worked.waited),
            handed_over_per_s=self._load.handed_over_per_s(window),
            cpu_s_per_million=cpu_s_per_million(
                raw.usage(self._folder.path),
                *(window.start_ms, window.end_ms),
                counted=worked.work.per_s * window.seconds,
            ),
            moments=moments(worked.work, noise, self._logs),
            core=core_speed(noise, window.start_ms, window.end_ms),
            void=why_window_is_void(noise, window, self._of.record.settings),
        )

    def _at_rate(self, per_s: int, bound_ms: float) -> AtRate:
        drained = phases.drain(self._load, per_s)
        if self._record.cycle_ms is None:
            self._record.cycle_ms = self._overload.cycle_ms()
        within_ms = widened_ms(bound_ms, self._cycle_ms)
        lag = phases.hold(self._load, per_s, within_ms, self._pace)
        noise = raw.noise(self._folder.path)
        return AtRate(
            per_s=per_s,
            bound_ms=within_ms,
            drained=drained,
            counted_before=self._load.counted_by(lag.window.start_ms),
            **asdict(lag),
            core=core_speed(noise, lag.window.start_ms, lag.window.end_ms),
            void=why_window_is_void(noise, lag.window, self._of.record.settings),
        )
