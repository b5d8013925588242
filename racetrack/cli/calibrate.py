"""`./race calibrate`: measures an engine with injected defects."""

import sys

import click

from racetrack.cli.parameters import Command, guarded, load_settings
from racetrack.machine_lock import machine_lock


@click.command(cls=Command)
def calibrate() -> None:
    """Check how accurate the harness is on this machine.

    It measures an engine with a known delay, stall and capacity, in the way it measures any engine,
    and compares what it finds with what it set. Each row leaves one run folder in logs/. The exit
    code is 1 if a row is off by more than is allowed.

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
