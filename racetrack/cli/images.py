"""`./race images`: builds images where none can be pulled."""

import click

from racetrack.cli.parameters import EXIT_CODES, ExampleCommand, guarded
from racetrack.screen import Screen
from racetrack.settings import load


@click.command(cls=ExampleCommand, epilog=EXIT_CODES)
def images() -> None:
    """Build the compose stack's images on this machine, where none can be pulled (AIRGAP=true).

    \b
    Everything comes from package registries. Apache Kafka takes Redpanda's place; an
    engine that comes only as an image is left out. Builds only what is missing or was built from
    something else. Needs root.

    \b
    Example:
        ./race images && AIRGAP=true ./run_experiment.sh {engine} 1000 10 10 1.0
    """
    from racetrack.images.build import build

    screen = Screen()
    with guarded(screen):
        build(load(), screen.say)
