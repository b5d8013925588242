"""`./race calibrate`: checks the harness with an engine that has injected defects."""

import sys

import click

from racetrack.cli.parameters import Command, guarded, load_settings
from racetrack.machine_lock import machine_lock


@click.command(cls=Command)
def calibrate() -> None:
    """Check how accurate the harness is on this machine.

    The harness measures an engine with a known delay, stall and capacity like any other engine, and
    compares the results with the known values. Each row of the table has a run folder in logs/. The
    exit code is 1 if a result is outside its tolerance.

    \b
    Example:
        ./race calibrate
    """
    from racetrack.run import calibration
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen) as guard:
        load_settings()
        with machine_lock():
            found = calibration.run(screen, guard)
    sys.exit(0 if all(finding.within for finding in found) else 1)
