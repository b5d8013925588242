"""`./race up`, `status`, `verify` and `down`: a stack that stays up for use by hand."""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack.cli.outputs import Output, output_options
from racetrack.cli.parameters import (
    QUERIES_OPTION,
    WORKLOAD_OPTION,
    Command,
    engine_argument,
    guarded,
    load_settings,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.engines.contract import Engine
    from racetrack.probes.broker import TopicOffsets
    from racetrack.probes.loadgen import Control, Settled
    from racetrack.results.verification import Verified
    from racetrack.stack.contract import RunningStack, Say, Stack
    from racetrack.terminal import Guard, Screen
    from racetrack.verify.verification import Limits, Verification


@click.command(cls=Command)
@engine_argument
@WORKLOAD_OPTION
@QUERIES_OPTION
def up(engine: str, workload: str | None, queries: str | None) -> None:
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
        settings = load_settings(workload, queries)
        chosen = find_engine(engine)
        stack = open_stack(settings, services_of(chosen, settings), screen.say, to_play=True)
        bring_up(chosen, stack, screen, guard, check_writes)
    describe_use(chosen, stack, screen)


def bring_up(
    engine: "Engine",
    stack: "Stack",
    screen: "Screen",
    guard: "Guard",
    check_writes: "Callable[[Stack, Callable[[], None]], None]",
) -> None:
    """Start the engine's stack, check it, and leave it running. If that fails, stop it."""
    from racetrack.run.checks import (
        check_services,
        make_ready,
        require_usable,
        services_of,
    )
    from racetrack.run.lifecycle import damage_explained

    require_usable(engine, stack)
    with machine_lock():
        make_ready(engine, stack, screen.say)
        with damage_explained(stack):
            try:
                with guard.restoring():
                    stack.start(services_of(engine, stack.settings), None, screen.say)
                    check_writes(stack, lambda: check_services(stack, engine))
                    engine.prepare_inputs(stack)
                    stack.leave_running(engine.name)
            except BaseException:
                guard.disarm()
                stack.stop(screen.say)
                raise


def describe_use(engine: "Engine", stack: "Stack", screen: "Screen") -> None:
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
        running = running_stack(load_settings())
    if running is None:
        screen.say(NO_STACK_IS_UP)
        sys.exit(1)
    sys.exit(0 if describe_running(running[1], screen.say) else 1)


def describe_running(running: "RunningStack", say: "Say") -> bool:
    """Print what runs, and what has ended since. Return whether the stack is complete."""
    say(f"Up since {running.since}, for {running.engine} on {running.workload}:")
    for name, pids in sorted(running.services.items()):
        # Processes in a virtual machine have no process ids on this machine.
        seen = f"pid {', '.join(map(str, pids))}" if pids else "running"
        say(f"  {name:<10} {seen}")
    if ended := sorted(set(running.expected) - set(running.services)):
        say(f"Ended since: {', '.join(ended)}. `./race up` printed where their logs are.")
    return not ended


@click.command(cls=Command)
@output_options
def verify(output: Output, limits: "Limits | None" = None) -> None:
    """Compare every view of the engine with its sources, on the stack that is up.

    Load the demo first; `./race up` prints how. The load is paused during the comparison.
    The command leaves one folder in logs/. The exit code is 1 if a view is wrong.

    \b
    Examples:
        ./race verify
        ./race verify --json -
    """
    from racetrack import engines
    from racetrack.errors import UsageError
    from racetrack.probes.broker import TopicOffsets
    from racetrack.probes.loadgen import Control
    from racetrack.results.folder import named_folder
    from racetrack.stack.runtime import NO_STACK_IS_UP, running_stack
    from racetrack.verify.verification import Verification
    from racetrack.workloads.contract import find_workload

    screen = output.screen()
    with guarded(screen):
        settings = load_settings()
        up = running_stack(settings)
        if up is None:
            raise UsageError(NO_STACK_IS_UP)
        with machine_lock():
            stack, running = up
            engine = engines.find_engine(running.engine)
            folder = named_folder(settings.logs_folder, f"{engine.name}_verify")
            where = stack.endpoints
            address = where.loadgen_host, where.loadgen_port
            main_topic = find_workload(stack.settings.workload).topic.name
            with Control(*address, lambda line: screen.say(f"  {line}")) as control:
                offsets = TopicOffsets(where.kafka, main_topic)
                make = partial(Verification, engine, stack, limits=limits)
                verified = verify_views(engine, stack, control, offsets, make, folder, screen)
            wrong = report_verified(engine, stack, verified, folder, screen, output)
    sys.exit(1 if wrong else 0)


def verify_views(
    engine: "Engine",
    stack: "Stack",
    control: "Control",
    offsets: "TopicOffsets",
    make: "Callable[[Settled, Path, Callable[[str], None]], Verification]",
    folder: Path,
    screen: "Screen",
) -> "Verified":
    """Pause the load and verify the views, in the same way as an experiment with `--verify`.

    `make` creates the verification. The load continues at its old rates in any case.

    Raises:
        RacetrackError: no view exists, or a source can't be read.
    """
    from racetrack.errors import RacetrackError
    from racetrack.probes.loadgen import settle
    from racetrack.results.verification import ViewStatus

    rates = control.pause()
    try:
        with screen.live("verifying") as status:
            verified = make(settle(control, offsets), folder, status.update).run()
    finally:
        control.resume(rates)
    if len(verified.named(ViewStatus.ABSENT)) == len(verified.views):
        how = "\n".join(f"  {line}" for line in engine.usage_hints(stack))
        raise RacetrackError(
            f"{engine.title} has none of the demo's views: the demo is not loaded there.\n{how}"
        )
    return verified


def report_verified(
    engine: "Engine",
    stack: "Stack",
    verified: "Verified",
    folder: Path,
    screen: "Screen",
    output: Output,
) -> str | None:
    """Write and print the result. Return the names of the views that are wrong, if any."""
    from racetrack.analysis.outcome import wrong_views
    from racetrack.report import summary
    from racetrack.report.render import OF_VIEWS, Document, view_records
    from racetrack.results.folder import shown
    from racetrack.results.json_file import write_json

    write_json(folder / "verified.json", verified.model_dump(mode="json", exclude_unset=True))
    wrong = wrong_views(verified)
    screen.heading(f"{engine.title}: {wrong or 'every view is right'}")
    for line in summary.describe_verification(verified):
        screen.say(line)
    screen.say(f"  logs        {shown(folder)}")
    common = {
        "tag": folder.name,
        "engine": engine.name,
        "workload": stack.settings.workload,
        "runtime": stack.runtime,
    }
    output.write(Document("verification", view_records(verified, common), columns=OF_VIEWS))
    return wrong


@click.command(cls=Command)
def down() -> None:
    """Stop the stack that is up and remove its data, whatever started it.

    \b
    Example:
        ./race down
    """
    from racetrack.stack.kubernetes import job_orphans
    from racetrack.stack.runtime import possible_stacks
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        settings = load_settings()
        with machine_lock():
            lines = []
            if settings.runtime == "kubernetes" and (
                job := job_orphans.remove_job(settings.stack_name)
            ):
                lines.append(f"removed {job}")
            lines += stop_all(possible_stacks(settings))
    screen.say("\n".join(lines) or "No stack is up.")


def stop_all(stacks: Iterable["Stack"]) -> list[str]:
    """Stop the stacks that run. Return what each printed; an empty list if none was running."""
    lines: list[str] = []
    for stack in stacks:
        stack.stop(lines.append)
    return [line.strip() for line in lines]
