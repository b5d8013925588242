"""`./race up`: starts the stack for an engine and leaves it running."""

import click

from racetrack.cli.parameters import (
    WORKLOAD_OPTION,
    Command,
    engine_argument,
    guarded,
    load_settings,
    replaceable,
)
from racetrack.machine_lock import machine_lock


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
    from racetrack import engines
    from racetrack.run.checks import (
        check_services,
        check_writes,
        make_ready,
        require_usable,
        services_of,
    )
    from racetrack.stack.runtime import open_stack
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen) as guard:
        settings = load_settings(workload)
        chosen = replaceable(engines.find_engine)(engine)
        services = services_of(chosen, settings)
        stack = replaceable(open_stack)(settings, services, screen.say, to_play=True)
        require_usable(chosen, stack)
        with machine_lock():
            make_ready(chosen, stack, screen.say)
            try:
                stack.start(services, None, screen.say)
                replaceable(check_writes)(stack, lambda: check_services(stack, chosen))
                chosen.prepare_inputs(stack)
                stack.leave_running(engine)
            except BaseException:
                guard.disarm()
                stack.stop(screen.say)
                raise
    for line in chosen.usage_hints(stack):
        screen.say(line)
    where = stack.endpoints
    screen.say(f"Change the load: nc {where.loadgen_host} {where.loadgen_port}, then `help`.")
    screen.say(f"Logs: {stack.where_logs()}. Take it down: ./race down")
    if stack.unmeasurable:
        screen.say(
            f"Not for measurements. {stack.unmeasurable.why}: CPU and memory can't be measured,"
            f" and `./run_experiment.sh` refuses. {stack.unmeasurable.remedy}."
        )
