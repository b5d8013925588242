"""`./race calibrate`: measures an engine whose flaws are known."""

import sys

import click

from racetrack.cli.parameters import EXIT_CODES, guarded
from racetrack.machine_lock import machine_lock
from racetrack.screen import Screen


@click.command(epilog=EXIT_CODES)
def calibrate() -> None:
    """Check how accurate the harness is here. It measures an engine with a known delay, stall and
    capacity on this machine, as it measures any engine. Leaves one run folder per row in logs/."""
    from racetrack.run import calibration

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        found = calibration.run(screen, guard)
    sys.exit(0 if all(finding.within for finding in found) else 1)
