"""One run after the other: what a single experiment, a sweep and the search for a limit share."""

from collections.abc import Callable
from pathlib import Path

import engines
from racetrack import interrupts
from racetrack.analysis.noise import is_void
from racetrack.run import faults
from racetrack.run.experiment import Experiment
from racetrack.run.readiness import make_ready, services_of
from racetrack.run_record import RunArguments
from racetrack.runfolder import RunFolder, read_run
from racetrack.screen import Screen
from racetrack.settings import Settings
from racetrack.stack.runtime import open_stack

REPEATS = 3


def run_until_not_void(once: Callable[[], Path], screen: Screen, guard: interrupts.Guard) -> Path:
    """Do a run, and again for as long as it is void, REPEATS times at most; the folder of the last,
    which may be void too. `once` does one, afresh, and returns its folder.

    Raises:
        Interrupted: by a signal.
    """
    folder = once()
    for repeat in range(1, REPEATS + 1):
        if not is_void(outcome := read_run(folder).outcome):
            break
        screen.heading(f"{outcome} Again, repeat {repeat} of {REPEATS} at most")
        guard.rearm()
        folder = once()
    return folder


def run_once(
    engine_name: str,
    asked: RunArguments,
    settings: Settings,
    screen: Screen,
    guard: interrupts.Guard,
) -> Path:
    """Run one experiment afresh; its folder, whose `run.json` holds the outcome.

    Raises:
        UsageError, SetupError, BusyError: it could not begin.
        Interrupted: by a signal.
    """
    engine = engines.find_engine(engine_name)
    hit = {
        fault: faults.services_hit(fault, engine, settings)
        for fault in map(faults.parse, asked.faults)
    }
    stack = open_stack(settings, services_of(engine, settings), screen.say)
    for fault, services in hit.items():
        faults.require_possible(fault, services, stack)
    make_ready(engine, stack, screen.say)
    folder = RunFolder.create(settings.logs_folder, engine_name, str(asked.pageviews_per_s))
    Experiment(asked, engine, stack, folder, screen).run(guard)
    return folder.path
