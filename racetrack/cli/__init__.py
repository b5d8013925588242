"""The command line, one file per command: `./run_experiment.sh` and `./race`."""

import sys

import click

from racetrack.cli import (
    calibrate,
    down,
    engines,
    experiment,
    images,
    limit,
    report,
    status,
    sweep,
    up,
    vary,
    verify,
)
from racetrack.cli.parameters import EXIT_CODES, ExampleGroup


@click.group(cls=ExampleGroup, epilog=EXIT_CODES)
def race() -> None:
    """Put streaming engines on the same track, and report which keep up and at what cost.

    \b
    Examples:
        ./run_experiment.sh {engine} 5000 20 10 1.0   one experiment
        ./race engines                          what there is to run, and its knobs
        ./race up {engine}                            the same stack, to play with
        ./race status
        ./race verify                           are its views right?
        ./race down
        ./race limit {engine}                         the highest rate that it keeps up with
        ./race sweep {engine} --rates 500,5000        many runs
        ./race report logs/…                    their tables and plots
        ./race calibrate                        how accurate the figures are here
        ./race images                           builds images where none can be pulled
    """


for command in (
    *(up.up, status.status, verify.verify, down.down),
    *(sweep.sweep, vary.vary, limit.limit, report.report, calibrate.calibrate, images.images),
    engines.list_engines,
):
    race.add_command(command)


def main() -> None:
    """What the front doors call; the usage shows them as they were typed."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["experiment"]:
        experiment.experiment.main(arguments[1:], prog_name="./run_experiment.sh")
    race.main(arguments, prog_name="./race")
