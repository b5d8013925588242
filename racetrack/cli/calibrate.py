"""`./race calibrate`: holds the ruler against an engine whose flaws are known."""

import sys

import click

from racetrack.cli.parameters import EXIT_CODES, guarded
from racetrack.machine_lock import machine_lock
from racetrack.screen import Screen


@click.command(epilog=EXIT_CODES)
def calibrate() -> None:
    """Check the ruler: an engine with a delay, a stall and a capacity that are known, measured on
    this machine as any engine is. Leaves a run folder a row in logs/."""
    from racetrack.run import calibration

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        found = calibration.run(screen, guard)
    sys.exit(0 if all(finding.within for finding in found) else 1)
