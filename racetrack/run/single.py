"""One run after the other: what a single experiment, a sweep and the search for a limit share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from racetrack import engines, terminal
from racetrack.analysis.noise import is_void
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import RunArguments
from racetrack.run import faults
from racetrack.run.experiment import Experiment
from racetrack.run.readiness import make_ready, require_usable, services_of
from racetrack.stack.contract import Stack
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen

REPEATS = 3
Made = TypeVar("Made")


def repeat_while_void(
    once: Callable[[], Made],
    why_void: Callable[[Made], str | None],
    screen: Screen,
    guard: terminal.Guard,
) -> Made:
    """Do something afresh, and again for as long as it is void, REPEATS times at most; what the
    last made, which may be void too. It is said each time.

    Raises:
        Interrupted: by a signal.
    """
    made = once()
    for repeat in range(1, REPEATS + 1):
        if not (why := why_void(made)):
            break
        screen.heading(f"{why} Again, repeat {repeat} of {REPEATS} at most")
        guard.rearm()
        made = once()
    return made


def run_until_not_void(once: Callable[[], Path], screen: Screen, guard: terminal.Guard) -> Path:
    """The same for a run whose `run.json` says whether it is void; `once` returns its folder."""

    def why_void(folder: Path) -> str | None:
        outcome = read_run(folder).outcome
        return outcome if is_void(outcome) else None

    return repeat_while_void(once, why_void, screen, guard)


def run_once(
    engine_name: str,
    asked: RunArguments,
    settings: Settings,
    screen: Screen,
    guard: terminal.Guard,
) -> Path:
    """Run one experiment afresh; its folder, whose `run.json` holds the outcome.

    Raises:
        UsageError, SetupError, BusyError: it could not begin.
        Interrupted: by a signal.
    """
    engine = engines.find_engine(engine_name)
    stack = open_stack(settings, services_of(engine, settings), screen.say)
    _require_faults_possible(asked.faults, engine, stack)
    make_ready(engine, stack, screen.say)
    folder = RunFolder.create(settings.logs_folder, engine_name, str(asked.pageviews_per_s))
    Experiment(asked, engine, stack, folder, screen).run(guard)
    return folder.path


def require_possible(engine_name: str, asked: RunArguments, settings: Settings) -> None:
    """Check what is asked before the machine is taken, which another run may hold for hours.

    Raises:
        UsageError, SetupError: a run of this kind can't begin here.
    """
    engine = engines.find_engine(engine_name)
    stack = open_stack(settings, services_of(engine, settings), lambda _: None)
    _require_faults_possible(asked.faults, engine, stack)
    require_usable(engine, stack)


def _require_faults_possible(texts: Sequence[str], engine: Engine, stack: Stack) -> None:
    for fault in map(faults.parse, texts):
        hit = faults.services_hit(fault, engine, stack.settings)
        faults.require_possible(fault, hit, stack)
