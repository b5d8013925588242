"""`./race images`: builds container images on machines that can't pull any."""

import click

from racetrack.cli.parameters import Command, guarded, load_settings


@click.command(cls=Command)
def images() -> None:
    """Build the compose stack's images on a machine that can't pull images (AIRGAP=true).

    Everything comes from package registries. Apache Kafka takes Redpanda's place; engines that are
    only available as an image are left out. The command builds images that are missing or whose
    sources have changed. It needs root.

    \b
    Example:
        ./race images && AIRGAP=true ./run_experiment.sh dh 1000 10 10 1.0
    """
    from racetrack.images.build import build
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        build(load_settings(), screen.say)
