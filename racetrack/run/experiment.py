"""One experiment: the main sequence of a run, in six steps."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from racetrack import engines, terminal
from racetrack.analysis import curves, figures, outcome, views
from racetrack.analysis.verdict import are_decided, decide_together, looks_ms
from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError, SetupError
from racetrack.results.figures import VerdictKind
from racetrack.results.folder import RunFolder, engine_folders, read_run, shown
from racetrack.results.run import Measured, PartOf, RunArguments, RunRecord, Window
from racetrack.run import checks, faults
from racetrack.run.lifecycle import OpenSession, damage_explained, describe_run, recorded_run
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen
from racetrack.workloads import load_profile
from racetrack.workloads.contract import run_label, work_of

STEPS = (
    "start the stack and the load generator",
    "run the demo in the engine and begin to sample its delay",
    "set the event rate",
    "wait for things to settle",
    "take samples of the engine and the broker",
    "stop everything",
)
TOP_SUMMARY = "top_summary.log"
VERIFY = "compare every view with the sources"
# Probes may write a row up to this long after the time that it describes. A verdict waits for this
# long after its window, so that the report, which reads all rows, comes to the same verdict.
ROWS_WITHIN_MS = 1_000

Watch = Callable[[float, str], None]
Describe = Callable[[RunRecord, Path], Sequence[str]]


def name_folder(_run: RunRecord, folder: Path) -> list[str]:
    """Describe the result of a run by its folder only."""
    return [f"  logs        {shown(folder)}"]


class Experiment:
    """A run of one engine or a group at one rate, with one run folder."""

    def __init__(
        self,
        arguments: RunArguments,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        screen: Screen,
        open_session: OpenSession = Session,
        describe: Describe = name_folder,
    ) -> None:
        """Create a run. `describe` returns the lines that are printed about its result."""
        self._describe = describe
        self._arguments, self._engine, self._stack = arguments, engine, stack
        self._profile = load_profile.parse(arguments.load) if arguments.load else None
        self._folder, self._screen = folder, screen
        self._names = [member.name for member in engine.members]
        self._session = open_session(
            engine,
            stack,
            folder,
            screen,
            arguments.delay_s,
            [faults.parse(f) for f in arguments.faults],
        )
        self._steps = (*STEPS[:-1], *([VERIFY] if arguments.verify else []), STEPS[-1])

    def run(self, guard: terminal.Guard) -> str:
        """Perform all steps. Return the outcome, as in `run.json`: `ok`, or what failed.

        Raises:
            SetupError: a component of the stack could not be installed.
            Interrupted: a signal was received. Everything was stopped, and `run.json` contains the
                outcome.
        """
        with self._screen.copied_to(self._folder.open_for_lines("start.log")):
            describe_run(self._folder, self._engine, self._stack, self._arguments)
            self._announce()
            is_complete = False
            try:
                with (
                    damage_explained(self._stack),
                    recorded_run(self._folder, guard, self._stop) as recorded,
                ):
                    result = recorded.text = self._do_steps()
                    is_complete = True
            except SetupError:
                raise
            except RacetrackError as error:
                result = str(error)
            self._report(result)
            if is_complete:
                self._speed_up_next_start(guard)
        return result

    def _speed_up_next_start(self, guard: terminal.Guard) -> None:
        """Prepare files that make the next start faster. A signal ends only this work, since the
        run itself is finished and reported."""
        if guard.is_pending:
            return
        guard.rearm()
        try:
            with guard.restoring():
                self._stack.speed_up_next_start(self._screen.say)
        except terminal.Interrupted as interrupted:
            guard.postpone(interrupted)
        finally:
            guard.disarm()

    def _announce(self) -> None:
        arguments = self._arguments
        on = run_label(self._stack.runtime, work_of(self._stack.settings.model_dump()))
        self._screen.heading(
            f"{self._engine.title} at {arguments.events_per_s:,} events/s{self._shape()}"
            f" ({on}), into {shown(self._folder.path)}"
        )
        for number, name in enumerate(self._steps, start=1):
            self._screen.say(f"  {number}. {name}{self._duration_of(number)}")
        for line in checks.space_warnings(self._stack, arguments):
            self._screen.remark(line)

    def _shape(self) -> str:
        return f" on average, {self._profile}" if self._profile else ""

    def _first_rate(self) -> int:
        """Return the rate while the engine settles."""
        return self._profile.rate_at(0.0) if self._profile else self._arguments.events_per_s

    def _duration_of(self, number: int) -> str:
        arguments = self._arguments
        warm = f", after {arguments.warm_up_s:g} s at half of it" if arguments.warm_up_s else ""
        within_s = 0 if arguments.faults or arguments.load else arguments.decide_within_s
        on = f"; then wait for a verdict, for {within_s:g} s at most" if within_s else ""
        load = f", while the load is: {self._profile}" if self._profile else ""
        return {
            3: f" to {self._first_rate():,}/s{warm}",
            4: f", {arguments.wait_s:g} s",
            5: f", {arguments.samples} of them {arguments.delay_s:g} s apart{on}{load}",
        }.get(number, "")

    def _do_steps(self) -> str:
        with self._step(1):
            self._session.start_stack()
        with self._step(2):
            self._session.run_demo()
            curves.import_reader()
        with self._step(3):
            self._warm_up()
            rate_set_ms = self._session.set_rate(self._first_rate())
            self._session.begin_faults()
        with self._step(4):
            self._session.watch(self._arguments.wait_s, "settling")
        with self._step(5):
            if self._profile:
                self._session.begin_load(self._profile)
            measured = self._session.sample(self._arguments.samples, rate_set_ms)
            for name in self._names:
                with self._folder.recording_of(name) as run:
                    run.measured = measured
            measured = self._watch_until_decided(measured)
            self._session.watch_recovery()
            self._session.sample_memory()
            for name, counts in self._session.account().items():
                with self._folder.recording_of(name) as run:
                    run.measured = measured.model_copy(update=dict(counts))
        if self._arguments.verify:
            with self._step(6):
                for name, verified in self._session.verify().items():
                    with self._folder.recording_of(name) as run:
                        run.verified = verified
        self._session.write_live_heaps()
        return outcome.joined({name: self._judge(name) for name in self._names})

    def _judge(self, name: str) -> str:
        """Compute the results of an engine from its raw files; return its outcome."""
        path = self._folder.of(name).path
        results = figures.results(path)
        with self._folder.recording_of(name) as run:
            run.results = results
        why = outcome.run_outcome(read_run(path))
        with self._folder.recording_of(name) as run:
            run.outcome = why
        return why

    def _watch_until_decided(self, measured: Measured) -> Measured:
        """Extend the window until the verdicts on it are decided. A run with faults or a changing
        load is never in a steady state, so its window is not extended."""
        arguments = self._arguments
        if not arguments.decide_within_s or arguments.faults or arguments.load:
            return measured
        until_ms = watch_until_decided(
            [self._folder.of(name).path for name in self._names],
            measured.rate_set_ms,
            measured.window,
            requested_per_s=arguments.events_per_s,
            within_s=arguments.decide_within_s,
            watch=self._session.watch,
        )
        return measured.model_copy(update={"watched_until_ms": until_ms})

    def _warm_up(self) -> None:
        """Warm up at half the rate. Otherwise an engine that starts near its capacity may need
        minutes to drain the backlog of its first seconds."""
        if self._arguments.warm_up_s:
            self._session.set_rate(max(1, self._arguments.events_per_s // 2))
            self._session.watch(self._arguments.warm_up_s, "warming up")

    def _stop(self) -> None:
        try:
            with self._step(len(self._steps)):
                self._session.stop()
        finally:  # again, because a full disk may have made the step fail before `stop`
            self._session.stop()

    @contextmanager
    def _step(self, number: int) -> Iterator[None]:
        name = self._steps[number - 1]
        self._screen.heading(f"[{number}/{len(self._steps)}] {name}{self._duration_of(number)}")
        with self._folder.step(name):
            yield

    def _report(self, result: str) -> None:
        runs = {path: read_run(path) for path in engine_folders(self._folder.path)}
        results = [run.results for run in runs.values() if run.results]
        if results:
            with self._folder.open_for_lines(TOP_SUMMARY) as file:
                file.writelines(f"{line}\n" for line in figures.top_summary(results[0]))
            for path, run in runs.items():
                for line in self._describe(run, path):
                    self._screen.say(line)
        elif result != "ok":
            self._screen.say(f"The experiment failed: {result}\nLogs: {shown(self._folder.path)}")


def watch_until_decided(
    folders: Sequence[Path],
    rate_set_ms: int,
    window: Window,
    *,
    requested_per_s: float,
    within_s: float,
    watch: Watch,
    now_ms: Callable[[], int] = now_ms,
) -> int:
    """Keep the load running after the sampling window until the verdicts on the engine's count and
    on each view are decided, for at most `within_s`. `folders` are the folders of the engines.
    Return the time of the last verdicts, epoch milliseconds.

    `watch(seconds, what)` must wait, and show `what` as the reason.
    """
    first_ms = window.end_ms
    looks = looks_ms(rate_set_ms, first_ms, first_ms + 1000 * within_s)
    what = "looking whether it kept up"
    for at_ms in looks:
        if (left_s := (at_ms + ROWS_WITHIN_MS - now_ms()) / 1000) > 0:
            watch(left_s, what)
        kinds = [
            _kinds(folder, rate_set_ms, at_ms, requested_per_s=requested_per_s, first_ms=first_ms)
            for folder in folders
        ]
        if all(map(are_decided, kinds)):
            break
        most_s = (looks[-1] - at_ms) / 1000
        what = f"undecided, watching on for {most_s:.0f} s at most; next look"
    return round(at_ms)


def _kinds(
    folder: Path, rate_set_ms: int, at_ms: float, *, requested_per_s: float, first_ms: float
) -> list[VerdictKind]:
    """Return the verdicts at a time, epoch milliseconds, on an engine's count and on each of its
    traced views; none if there can be none, because the broker has deleted part of the backlog."""
    count = curves.read(folder)
    if curves.deleted_unread(count):
        return []
    recorded = [count, *(view for _, view in views.traced_curves(folder, count.partitions))]
    verdicts = decide_together(recorded, rate_set_ms, at_ms, requested_per_s, first_ms)
    return [verdict.kind for verdict in verdicts]


def run_once(
    engine_name: str,
    arguments: RunArguments,
    settings: Settings,
    screen: Screen,
    guard: terminal.Guard,
    *,
    find_engine: Callable[[str], Engine] = engines.find_engine,
    open_stack: Callable[..., Stack] = open_stack,
    run: Callable[[Experiment, terminal.Guard], object] = Experiment.run,
    describe: Describe = name_folder,
    part_of: PartOf | None = None,
) -> Path:
    """Run one experiment on a fresh stack. Return its run folder; `run.json` contains the outcome.
    `describe` returns the lines that are printed about its result.

    Raises:
        UsageError, SetupError, BusyError: the run could not begin.
        Interrupted: a signal was received.
    """
    engine = find_engine(engine_name)
    stack = open_stack(settings, checks.services_of(engine, settings), screen.say)
    _require_faults_possible(arguments.faults, engine, stack)
    checks.make_ready(engine, stack, screen.say)
    label = arguments.load.split()[0] if arguments.load else str(arguments.events_per_s)
    folder = RunFolder.create(settings.logs_folder, engine_name, label)
    if part_of:
        with folder.recording() as record:
            record.part_of = part_of
    run(Experiment(arguments, engine, stack, folder, screen, describe=describe), guard)
    return folder.path


def require_possible(engine_name: str, arguments: RunArguments, settings: Settings) -> None:
    """Check the arguments of a run before it waits for the machine, since another run may occupy
    the machine for hours.

    Raises:
        UsageError, SetupError: a run with these arguments can't begin.
    """
    engine = engines.find_engine(engine_name)
    stack = open_stack(settings, checks.services_of(engine, settings), lambda _: None)
    _require_faults_possible(arguments.faults, engine, stack)
    checks.require_usable(engine, stack)


def _require_faults_possible(texts: Sequence[str], engine: Engine, stack: Stack) -> None:
    for fault in map(faults.parse, texts):
        hit = faults.services_hit(fault, engine, stack.settings)
        faults.require_possible(fault, hit, stack)
