"""`./race status`: shows the running stack."""

import sys
from typing import TYPE_CHECKING

import click

from racetrack.cli.parameters import Command, guarded, load_settings

if TYPE_CHECKING:
    from racetrack.stack.contract import RunningStack, Say


@click.command(cls=Command)
def status() -> None:
    """Show the stack that is up. The exit code is 0 if it is complete, otherwise 1.

    \b
    Example:
        ./race status
    """
    from racetrack.stack.runtime import NO_STACK_IS_UP, running_stack
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        found = running_stack(load_settings())
    if found is None:
        screen.say(NO_STACK_IS_UP)
        sys.exit(1)
    sys.exit(0 if describe(found[1], screen.say) else 1)


def describe(running: "RunningStack", say: "Say") -> bool:
    """Print what runs, and what has ended since. Return whether the stack is complete."""
    say(f"Up since {running.since}, for {running.engine} on {running.workload}:")
    for name, pids in sorted(running.services.items()):
        # Processes in a virtual machine have no process ids on this machine.
        seen = f"pid {', '.join(map(str, pids))}" if pids else "running"
        say(f"  {name:<10} {seen}")
    if ended := sorted(set(running.expected) - set(running.services)):
        say(f"Ended since: {', '.join(ended)}. `./race up` printed where their logs are.")
    return not ended
