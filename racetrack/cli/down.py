"""`./race down`: stops the running stack."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from racetrack.cli.parameters import Command, guarded, load_settings
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.stack.contract import Stack


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
            lines = stop_all(possible_stacks(settings))
    screen.say("\n".join(lines) or "No stack is up.")


def stop_all(stacks: "Iterable[Stack]") -> list[str]:
    """Stop the stacks that run. Return what each printed; an empty list if none was running."""
    lines: list[str] = []
    for stack in stacks:
        stack.stop(lines.append)
    return [line.strip() for line in lines]
