"""An engine's limit: its capacity, and the highest rate at which its lag stays within a bound."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeVar

import engines
from racetrack import interrupts, machine
from racetrack.analysis import capacity, curves
from racetrack.analysis.capacity import Work
from racetrack.analysis.lag import throughput
from racetrack.analysis.noise import why_window_is_void
from racetrack.analysis.outcome import RATE_TOLERANCE
from racetrack.errors import RacetrackError
from racetrack.json_file import write_json
from racetrack.limit_record import (
    Capacity,
    LimitRecord,
    OverloadedRun,
    SteadyRun,
    SustainableRate,
)
from racetrack.report import limits
from racetrack.run import search
from racetrack.run.experiment import describe_run
from racetrack.run.phases import PACE, Pace, overload, steady
from racetrack.run.readiness import make_ready, services_of
from racetrack.run.session import Session
from racetrack.run.single import repeat_while_void
from racetrack.run_record import RunArguments
from racetrack.runfolder import RunFolder, named_folder
from racetrack.screen import Screen
from racetrack.settings import Settings, for_record
from racetrack.stack.runtime import open_stack

START_RATE = 1_000
AnyRun = TypeVar("AnyRun", OverloadedRun, SteadyRun)


class LimitSearch:
    """One search; leaves `logs/<stamp>_UTC_<engine>_limit/limit.json` beside the runs it made."""

    def __init__(
        self,
        engine_name: str,
        settings: Settings,
        screen: Screen,
        guard: interrupts.Guard,
        pace: Pace = PACE,
        start_per_s: int = START_RATE,
    ) -> None:
        self._pace, self._start_per_s = pace, start_per_s
        self._engine = engines.find_engine(engine_name)
        self._settings, self._screen, self._guard = settings, screen, guard
        runtime = open_stack(settings, services_of(self._engine, settings), lambda _: None).runtime
        self.folder = named_folder(settings.logs_folder, f"{engine_name}_limit")
        self._found = LimitRecord(
            engine=engine_name,
            runtime=runtime,
            machine=machine.describe(),
            settings=for_record(settings),
        )
        self._began_s = time.monotonic()
        self._spoilt_s = 0.0
        self._longest_s = 0.0  # of the runs at a rate, so far
        self._sessions = 0
        self._void: str | None = None  # why one that counts is

    def run(self) -> LimitRecord:
        """Search.

        Raises:
            RacetrackError: a run failed, of which nothing can be said.
            Interrupted: by a signal. Either way, what was found so far stands in `limit.json`.
        """
        try:
            found = search.find(self, self._pace.sessions)
        except RacetrackError as error:
            self._write(str(error))
            raise
        self._write(self._took_in(found))
        return self._found

    def overload(self) -> Work:
        """A fresh run with always more to do, into a folder of its own; again while it is void."""
        self._sessions += 1
        self._screen.heading(f"== capacity, run {self._sessions} of {self._pace.sessions}")
        run = self._not_void(self._overloaded)
        return Work(run.batches_per_s, run.youngest_s, run.oldest_s, run.idle_share)

    def _overloaded(self) -> OverloadedRun:
        began_s = time.monotonic()
        with self._fresh("overload", self._start_per_s) as (session, folder):
            seen = overload(session, self._start_per_s, self._pace)
        told, window = curves.read(folder.path), seen.window
        work = capacity.work(told, window.start_ms, window.end_ms, self._pace.batch_s)
        run = OverloadedRun(
            tag=folder.tag,
            **asdict(seen),
            **asdict(work),
            handed_over_per_s=throughput(told, window.start_ms, window.end_ms).handed_over_per_s,
            void=why_window_is_void(folder.path, window),
        )
        self._found.overloaded = (*self._found.overloaded, run)
        self._keep(run, time.monotonic() - began_s, limits.overloaded_in_words(run))
        return run

    def hold(self, pageviews_per_s: int) -> search.Held:
        """A fresh run at a rate, into a folder of its own; again while it is void."""
        self._screen.heading(f"== {pageviews_per_s:,} pageviews/s")
        run = self._not_void(lambda: self._steady(pageviews_per_s))
        is_offered = run.handed_over_per_s >= pageviews_per_s * (1 - RATE_TOLERANCE)
        return search.Held(math.inf if run.broken_off else run.lag_p99_ms, run.cycle_ms, is_offered)

    def _steady(self, pageviews_per_s: int) -> SteadyRun:
        began_s = time.monotonic()
        with self._fresh(str(pageviews_per_s), pageviews_per_s) as (session, folder):
            seen = steady(session, folder.path, pageviews_per_s, self._pace)
        run = SteadyRun(
            tag=folder.tag,
            pageviews_per_s=pageviews_per_s,
            **asdict(seen),
            void=why_window_is_void(folder.path, seen.window),
        )
        self._found.steady = (*self._found.steady, run)
        self._keep(run, time.monotonic() - began_s, limits.steady_in_words(run))
        return run

    def _keep(self, run: OverloadedRun | SteadyRun, took_s: float, said: str) -> None:
        """Say what a run showed, and write down what was found so far. The time of a run that
        others spoilt is not the search's."""
        self._screen.say(f"  {said}")
        if run.void:
            self._spoilt_s += took_s
        elif isinstance(run, SteadyRun) and not run.broken_off:
            self._longest_s = max(self._longest_s, took_s)
        self._write("unfinished")

    def _not_void(self, once: Callable[[], AnyRun]) -> AnyRun:
        """A run, made again while others use the machine."""
        run = repeat_while_void(once, lambda made: made.void, self._screen, self._guard)
        self._void = run.void or self._void
        return run

    def has_time(self) -> bool:
        """Whether a run as long as the longest would end in time."""
        used_s = time.monotonic() - self._began_s - self._spoilt_s
        return used_s + (self._longest_s or self._pace.steady_run_s) <= 60 * self._pace.within_min

    @contextmanager
    def _fresh(self, label: str, pageviews_per_s: int) -> Iterator[tuple[Session, RunFolder]]:
        """The stack started for one run, the demo loaded; stopped again, however that ends."""
        stack = open_stack(
            self._settings, services_of(self._engine, self._settings), self._screen.say
        )
        make_ready(self._engine, stack, self._screen.say)
        folder = RunFolder.create(self._settings.logs_folder, self._engine.name, label)
        asked = RunArguments(
            pageviews_per_s=pageviews_per_s, wait_s=self._pace.settle_s, samples=1, delay_s=1.0
        )
        describe_run(folder, self._engine, stack, asked)
        session = Session(self._engine, stack, folder, self._screen, 1.0)
        outcome = "unfinished"
        try:
            session.start_stack()
            session.run_demo()
            yield session, folder
            outcome = "ok"
        except BaseException as error:
            outcome = str(error) or repr(error)
            raise
        finally:
            self._guard.disarm()
            with folder.recording() as run:
                run.outcome = outcome
            session.stop()
            self._guard.rearm()

    def _took_in(self, found: search.Found | None) -> str:
        """Into the record; the outcome."""
        if not found:
            idle = self._found.overloaded[-1]
            return (
                "its capacity is not known: for"
                f" {100 * idle.idle_share:.0f} % of the time it had nothing to do, since generator"
                f" and broker gave it no more than {idle.handed_over_per_s:,.0f}/s"
            )
        self._found.capacity = Capacity(
            pageviews_per_s=found.capacity.per_s, low=found.capacity.low, high=found.capacity.high
        )
        self._found.sustainable = tuple(
            SustainableRate(
                bound_ms=one.bound_ms,
                held_pageviews_per_s=one.held,
                failed_pageviews_per_s=one.failed,
            )
            for one in found.sustained
        )
        if self._void:
            return self._void
        if found.is_whole:
            return "ok"
        return f"no more runs fitted into {self._pace.within_min:g} minutes"

    def _write(self, outcome: str) -> None:
        self._found.outcome = outcome
        self._found.minutes = round((time.monotonic() - self._began_s) / 60, 1)
        write_json(self.folder / "limit.json", self._found.model_dump(mode="json"))
