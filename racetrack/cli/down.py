"""`./race down`: stops the stack that is up."""

import click

from racetrack.cli.parameters import EXIT_CODES, guarded
from racetrack.machine_lock import machine_lock
from racetrack.screen import Screen
from racetrack.settings import load
from racetrack.stack.runtime import stacks_that_may_stand


@click.command(epilog=EXIT_CODES)
def down() -> None:
    """Stop the stack that is up and remove its data, whatever started it."""
    screen = Screen()
    with guarded(screen), machine_lock():
        said: list[str] = []
        for stack in stacks_that_may_stand(load()):
            stack.stop(said.append)
    screen.say("\n".join(line.strip() for line in said) or "No stack is up.")
