"""Lifecycle of a run, shared by experiments, searches, comparisons and live sessions: preparation,
its description and outcome, clean-up, and repetition of void runs."""

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from racetrack import __version__, engines, host, integrity, terminal
from racetrack.config import Settings, for_record
from racetrack.engines.contract import Engine
from racetrack.errors import BusyError, SetupError, UsageError
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import (
    QueryRecord,
    RunArguments,
    RunRecord,
    TracedViewRecord,
    is_throttled,
    is_void,
)
from racetrack.run.checks import caveats_of_elsewhere, make_ready, services_of
from racetrack.run.session import Session
from racetrack.stack.contract import Say, Stack
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen
from racetrack.workloads.contract import Workload, workload_in

REPEATS = 3
OpenSession = Callable[..., Session]
Made = TypeVar("Made")


def prepared(engine_name: str, settings: Settings, say: Say) -> tuple[Engine, Stack]:
    """Return an engine, and a stack that is ready to be started for it.

    Raises:
        UsageError, SetupError, BusyError: the engine can't run here.
    """
    engine = engines.find_engine(engine_name)
    stack = open_stack(settings, services_of(engine, settings), say)
    make_ready(engine, stack, say)
    return engine, stack


class Outcome:
    """Outcome of a run, as written into `run.json`: `ok`, or a text on what failed."""

    def __init__(self) -> None:
        self.text = "unfinished"


@contextmanager
def recorded_run(
    folder: RunFolder, guard: terminal.Guard, stop: Callable[[], None]
) -> Iterator[Outcome]:
    """Record the outcome of the run inside the context, and call `stop` at its end.

    The code inside sets the outcome. If it raises an error, the error becomes the outcome and is
    raised again. Until clean-up begins, a signal interrupts the run. At the end the guard, which
    handles signals, is disarmed.

    Raises:
        Interrupted: a signal interrupted the run. Everything was stopped and the outcome recorded.
    """
    outcome = Outcome()
    try:
        with guard.restoring():
            yield outcome
            guard.disarm()
    except BaseException as error:
        outcome.text = str(error) or repr(error)
        raise
    finally:
        guard.disarm()
        try:
            with folder.recording() as run:
                run.outcome = outcome.text
        finally:  # also if a full disk prevents writing the outcome
            stop()


@contextmanager
def damage_explained(stack: Stack) -> Iterator[None]:
    """After a failure, look for damaged files in the installed components that the run uses, and
    report these instead of the failure. The stack must have been stopped, as this takes seconds of
    CPU time.

    Raises:
        SetupError: a component is damaged.
    """
    try:
        yield
    except (UsageError, SetupError, BusyError):
        raise
    except Exception as error:
        if damage := integrity.examine_all([Path(sys.prefix), *stack.component_folders()]):
            raise SetupError(f"{damage}\n{error}") from error
        raise


@contextmanager
def started_session(
    engine: Engine,
    stack: Stack,
    folder: RunFolder,
    screen: Screen,
    guard: terminal.Guard,
    open_session: OpenSession,
) -> Iterator[Session]:
    """Describe a run, start the stack, and load the engines' demos (the scripts that create their
    views). At the end of the context, stop everything and record the outcome.

    Raises:
        RacetrackError: a component of the stack failed.
        Interrupted: a signal was received.
    """
    describe_run(folder, engine, stack)
    session = open_session(engine, stack, folder, screen, 1.0)
    with (
        damage_explained(stack),
        recorded_run(folder, guard, session.stop) as recorded,
    ):
        session.start_stack()
        session.run_demo()
        yield session
        recorded.text = "ok"


def describe_run(
    folder: RunFolder, engine: Engine, stack: Stack, arguments: RunArguments | None = None
) -> None:
    """Write the description of a run into `run.json`: settings, machine and views, and the
    arguments of a run with one window."""
    settings = stack.settings
    workload = workload_in(settings)
    with folder.recording() as run:
        run.runtime = stack.runtime
        run.data_in_memory = stack.data_in_memory
        # A copy in which every field is set explicitly: fields left at their defaults would not be
        # written.
        run.arguments = RunArguments(**dict(arguments)) if arguments else None
        run.outcome = "unfinished"
        run.settings = for_record(settings)
        run.broker = run.known_broker
        if settings.tracer_events_per_second:
            run.traced_views = traced_views(workload)
        if settings.reads_per_second:
            run.queries = tuple(
                QueryRecord(name=query.name, traced_view=query.by.name if query.by else None)
                for query in workload.queries
            )
        run.event_window_ms = workload.event_window_ms
        run.machine = host.describe()
        run.versions = {"racetrack": __version__, "python": platform.python_version()}
    for member in engine.members:
        with folder.recording_of(member.name) as run:
            _describe_engine(run, member, stack)


def _describe_engine(run: RunRecord, engine: Engine, stack: Stack) -> None:
    """Write the description of one engine into its record."""
    settings = stack.settings
    if measured := engine.measured_services(settings):  # if empty, its cost is unknown
        run.engine_services = measured
    run.classes = engine.classes(settings.model_copy(update={"runtime": stack.runtime}))
    run.caveats = (*engine.caveats(settings), *caveats_of_elsewhere(engine, stack))
    run.summary_after_ms = engine.observer_in(settings).summary_after_ms
    if engine.script_ending:
        run.workload_views = len(workload_in(settings).views)
    run.absent_views = tuple(engine.absent_views(settings))


def traced_views(workload: Workload) -> tuple[TracedViewRecord, ...]:
    """Return the records of a workload's traced views with tracer rows."""
    return tuple(
        TracedViewRecord(
            name=view.name, source=view.source, parity=view.parity, is_time=view.is_time
        )
        for view in workload.with_tracer_rows
    )


def repeat_while_void(
    once: Callable[[], Made],
    why_void: Callable[[Made], str | None],
    screen: Screen,
    guard: terminal.Guard,
) -> Made:
    """Call `once`, and repeat it at most REPEATS times while its result is void, but not because of
    a CPU quota, which stays. Return the last result, which may be void too. Print the reason for
    each repetition.

    Raises:
        Interrupted: a signal was received.
    """
    made = once()
    for repeat in range(1, REPEATS + 1):
        if not (why := why_void(made)) or is_throttled(why):
            break
        screen.heading(f"{why} Again, repeat {repeat} of {REPEATS} at most")
        guard.rearm()
        made = once()
    return made


def run_until_not_void(once: Callable[[], Path], screen: Screen, guard: terminal.Guard) -> Path:
    """Repeat a run while its outcome in `run.json` is void. `once` makes a run and returns its
    folder."""

    def why_void(folder: Path) -> str | None:
        outcome = read_run(folder).outcome
        return outcome if is_void(outcome) else None

    return repeat_while_void(once, why_void, screen, guard)
