"""One run after the other: what a single experiment, a sweep and the search for a limit share."""

from pathlib import Path

import engines
from racetrack import interrupts
from racetrack.run import faults
from racetrack.run.experiment import Experiment
from racetrack.run.readiness import make_ready, services_of
from racetrack.run_record import RunArguments
from racetrack.runfolder import RunFolder
from racetrack.screen import Screen
from racetrack.settings import Settings
from racetrack.stack.runtime import open_stack


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
