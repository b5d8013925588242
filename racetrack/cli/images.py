"""`./race images`: builds images on machines that can pull none."""

import click

from racetrack.cli.parameters import Command, guarded, load_settings


@click.command(cls=Command)
def images() -> None:
    """Build the compose stack's images on this machine, where none can be pulled (AIRGAP=true).

    Everything comes from package registries. Apache Kafka takes Redpanda's place; an engine that
    comes only as an image is left out. The command builds only what is missing or was built from
    something else. It needs root.

    \b
    Example:
        ./race images && AIRGAP=true ./run_experiment.sh dh 1000 10 10 1.0
    """
    from racetrack.images.build import build
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        build(load_settings(), screen.say)
