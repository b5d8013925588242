"""`./race status`: shows the running stack."""

import sys

import click

from racetrack.cli.parameters import Command, guarded, load_settings, replaceable


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
        found = replaceable(running_stack)(load_settings())
    if found is None:
        screen.say(NO_STACK_IS_UP)
        sys.exit(1)
    _, running = found
    screen.say(f"Up since {running.since}, for {running.engine} on {running.workload}:")
    for name, pids in sorted(running.services.items()):
        # Processes in a virtual machine have no process ids on this machine.
        seen = f"pid {', '.join(map(str, pids))}" if pids else "running"
        screen.say(f"  {name:<10} {seen}")
    if ended := sorted(set(running.expected) - set(running.services)):
        screen.say(f"Ended since: {', '.join(ended)}. `./race up` printed where their logs are.")
        sys.exit(1)
