"""`./race up`: starts the stack for an engine and leaves it running."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from racetrack.cli.parameters import (
    WORKLOAD_OPTION,
    Command,
    engine_argument,
    guarded,
    load_settings,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.engines.contract import Engine
    from racetrack.stack.contract import Stack
    from racetrack.terminal import Guard, Screen


@click.command(cls=Command)
@engine_argument
@WORKLOAD_OPTION
def up(engine: str, workload: str | None) -> None:
    """Start the stack for ENGINE and leave it running, with the load at its initial rates.

    At its end the command prints how to load the engine's script, how to change the load, and where
    the logs are.

    \b
    Examples:
        ./race up dh
        ./race up flink --workload ads
    """
    from racetrack.engines import find_engine
    from racetrack.run.checks import check_writes, services_of
    from racetrack.stack.runtime import open_stack
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen) as guard:
        settings = load_settings(workload)
        chosen = find_engine(engine)
        stack = open_stack(settings, services_of(chosen, settings), screen.say, to_play=True)
        bring_up(chosen, stack, screen, guard, check_writes)
    describe(chosen, stack, screen)


def bring_up(
    engine: "Engine",
    stack: "Stack",
    screen: "Screen",
    guard: "Guard",
    check_writes: "Callable[[Stack, Callable[[], None]], None]",
) -> None:
    """Start the engine's stack, check it, and leave it running. If that fails, stop it."""
    from racetrack.run.checks import check_services, make_ready, require_usable, services_of

    require_usable(engine, stack)
    with machine_lock():
        make_ready(engine, stack, screen.say)
        try:
            stack.start(services_of(engine, stack.settings), None, screen.say)
            check_writes(stack, lambda: check_services(stack, engine))
            engine.prepare_inputs(stack)
            stack.leave_running(engine.name)
        except BaseException:
            guard.disarm()
            stack.stop(screen.say)
            raise


def describe(engine: "Engine", stack: "Stack", screen: "Screen") -> None:
    """Print how to use a running stack, and how to stop it."""
    for line in engine.usage_hints(stack):
        screen.say(line)
    where = stack.endpoints
    screen.say(f"Change the load: nc {where.loadgen_host} {where.loadgen_port}, then `help`.")
    screen.say(f"Logs: {stack.where_logs()}. Take it down: ./race down")
    if stack.unmeasurable:
        screen.say(
            f"Not for measurements. {stack.unmeasurable.why}: CPU and memory can't be measured,"
            f" and `./run_experiment.sh` refuses. {stack.unmeasurable.remedy}."
        )
