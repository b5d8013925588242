"""`./race down`: stops the running stack."""

import click

from racetrack.cli.parameters import Command, guarded, load_settings, replaceable
from racetrack.machine_lock import machine_lock


@click.command(cls=Command)
def down() -> None:
    """Stop the stack that is up and remove its data, whatever started it.

    \b
    Example:
        ./race down
    """
    from racetrack.stack.runtime import possible_stacks
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        settings = load_settings()
        with machine_lock():
            lines: list[str] = []
            for stack in replaceable(possible_stacks)(settings):
                stack.stop(lines.append)
    screen.say("\n".join(line.strip() for line in lines) or "No stack is up.")
