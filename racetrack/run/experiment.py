"""One experiment in six steps, to be read from top to bottom."""

import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from racetrack import __version__, host, terminal
from racetrack.analysis import figures, outcome
from racetrack.config import for_record
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError, SetupError
from racetrack.report import summary
from racetrack.results.folder import RunFolder, read_run, shown
from racetrack.results.run import (
    Measured,
    QueryRecord,
    RunArguments,
    TracedViewRecord,
)
from racetrack.run import decision, faults, room
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from racetrack.workloads.contract import Workload, find_workload, run_label

STEPS = (
    "start the stack and the load generator",
    "run the demo in the engine and begin to sample its delay",
    "set the pageview rate",
    "wait for things to settle",
    "take samples of the engine and the broker",
    "stop everything",
)
TOP_SUMMARY = "top_summary.log"
VERIFY = "compare every view with the sources"


class Experiment:
    """One engine, one rate, one run folder."""

    def __init__(
        self,
        asked: RunArguments,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        screen: Screen,
    ) -> None:
        self._asked, self._engine, self._stack = asked, engine, stack
        self._folder, self._screen = folder, screen
        self._session = Session(
            engine, stack, folder, screen, asked.delay_s, [faults.parse(f) for f in asked.faults]
        )
        self._steps = (*STEPS[:-1], *([VERIFY] if asked.verify else []), STEPS[-1])

    def run(self, guard: terminal.Guard) -> str:
        """Do the steps; returns the outcome, which `run.json` holds too: `ok` or what failed.

        Raises:
            SetupError: something that the stack needs could not be installed.
            Interrupted: by a signal; everything has been stopped, and `run.json` says so.
        """
        with self._screen.copied_to(self._folder.open_for_lines("start.log")):
            self._announce()
            result = "unfinished"
            try:
                with terminal.unwrapped():
                    result = self._do_steps()
                    guard.disarm()
            except SetupError as error:
                result = str(error)
                raise
            except RacetrackError as error:
                result = str(error)
            except BaseException as error:
                result = str(error) or repr(error)
                raise
            finally:
                guard.disarm()
                with ExitStack() as at_last:
                    # Again, because a full disk may keep the step from being recorded.
                    at_last.callback(self._session.stop)
                    with self._folder.recording() as run:
                        run.outcome = result
                    with self._step(len(self._steps)):
                        self._session.stop()
            self._report(result)
            if read_run(self._folder.path).results:
                # All is stopped and reported, so a signal may end this.
                guard.rearm()
                self._stack.speed_up_next_start(self._screen.say)
                guard.disarm()
        return result

    def _announce(self) -> None:
        describe_run(self._folder, self._engine, self._stack, self._asked)
        asked = self._asked
        on = run_label(self._stack.runtime, self._stack.settings.workload)
        self._screen.heading(
            f"{self._engine.title} at {asked.pageviews_per_s:,} pageviews/s"
            f" ({on}), into {shown(self._folder.path)}"
        )
        for number, name in enumerate(self._steps, start=1):
            self._screen.say(f"  {number}. {name}{self._how_long(number)}")
        for line in room.forecasts(self._stack, asked):
            self._screen.remark(line)

    def _how_long(self, number: int) -> str:
        asked = self._asked
        warm = f", after {asked.warm_up_s:g} s at half of it" if asked.warm_up_s else ""
        within_s = 0 if asked.faults else asked.decide_within_s
        on = f"; then watch on until it is decided, for {within_s:g} s at most" if within_s else ""
        return {
            3: f" to {asked.pageviews_per_s:,}/s{warm}",
            4: f", {asked.wait_s:g} s",
            5: f", {asked.samples} of them {asked.delay_s:g} s apart{on}",
        }.get(number, "")

    def _do_steps(self) -> str:
        with self._step(1):
            self._session.start_stack()
        with self._step(2):
            self._session.run_demo()
        with self._step(3):
            self._warm_up()
            rate_set_ms = self._session.set_rate(self._asked.pageviews_per_s)
            self._session.begin_faults()
        with self._step(4):
            self._session.watch(self._asked.wait_s, "settling")
        with self._step(5):
            measured = self._session.sample(self._asked.samples, rate_set_ms)
            with self._folder.recording() as run:
                run.measured = measured
            measured = self._watch_until_decided(measured)
            self._session.watch_recovery()
            counts = self._session.account()
            with self._folder.recording() as run:
                run.measured = measured.model_copy(update=dict(counts))
        if self._asked.verify:
            with self._step(6):
                verified = self._session.verify()
                with self._folder.recording() as run:
                    run.verified = verified
        results = figures.results(self._folder.path)
        with self._folder.recording() as run:
            run.results = results
        return outcome.run_outcome(read_run(self._folder.path))

    def _watch_until_decided(self, measured: Measured) -> Measured:
        """A fault is no steady state: with one, the window alone is judged."""
        asked = self._asked
        if not asked.decide_within_s or asked.faults:
            return measured
        until_ms = decision.watch_until_decided(
            *(self._folder.path, measured.rate_set_ms, measured.window, asked.pageviews_per_s),
            *(asked.decide_within_s, self._session.watch),
        )
        return measured.model_copy(update={"watched_until_ms": until_ms})

    def _warm_up(self) -> None:
        """Warm up at half the rate: an engine started near its capacity may keep the backlog of its
        first seconds for minutes."""
        if self._asked.warm_up_s:
            self._session.set_rate(max(1, self._asked.pageviews_per_s // 2))
            self._session.watch(self._asked.warm_up_s, "warming up")

    @contextmanager
    def _step(self, number: int) -> Iterator[None]:
        name = self._steps[number - 1]
        self._screen.heading(f"[{number}/{len(self._steps)}] {name}{self._how_long(number)}")
        with self._folder.step(name):
            yield

    def _report(self, result: str) -> None:
        run = read_run(self._folder.path)
        if run.results:
            with self._folder.open_for_lines(TOP_SUMMARY) as file:
                file.writelines(f"{line}\n" for line in summary.format_samples(run.results))
            for line in summary.describe_run(run, self._folder.path):
                self._screen.say(line)
        elif result != "ok":
            self._screen.say(f"The experiment failed: {result}\nLogs: {shown(self._folder.path)}")


def describe_run(folder: RunFolder, engine: Engine, stack: Stack, asked: RunArguments) -> None:
    """Begin `run.json`: what was asked, with what settings, on what machine."""
    with folder.recording() as run:
        run.runtime = stack.runtime
        run.data_in_memory = stack.data_in_memory
        # All of them, also those that were not given: what is not set is not written.
        run.asked = RunArguments(**dict(asked))
        run.outcome = "unfinished"
        run.settings = for_record(stack.settings)
        run.engine_services = engine.services_in(stack.settings)
        run.caveats = tuple(engine.caveats(stack.settings))
        run.summary_after_ms = engine.summary_after_ms
        workload = find_workload(stack.settings.workload)
        if engine.script_ending:
            run.workload_views = len(workload.views)
        run.absent_views = tuple(engine.absent_views(stack.settings))
        if stack.settings.tracer_events_per_second:
            run.traced_views = traced_views(workload)
        if stack.settings.reads_per_second:
            run.queries = tuple(
                QueryRecord(name=asked.name, traced_view=asked.by.name if asked.by else None)
                for asked in workload.queries
            )
        run.event_window_ms = workload.event_window_ms
        run.machine = host.describe()
        run.versions = {"racetrack": __version__, "python": platform.python_version()}


def traced_views(workload: Workload) -> tuple[TracedViewRecord, ...]:
    """The followed views as a run writes them down."""
    return tuple(
        TracedViewRecord(
            name=view.name, source=view.source, parity=view.parity, is_time=view.is_time
        )
        for view in workload.traced_views
    )
