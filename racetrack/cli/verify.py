"""`./race verify`: compares views with their sources on a running stack."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack.cli.parameters import Command, guarded, load_settings
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.engines.contract import Engine
    from racetrack.probes.broker import TopicOffsets
    from racetrack.probes.loadgen import Control, Settled
    from racetrack.results.verification import Verified
    from racetrack.stack.contract import Stack
    from racetrack.terminal import Screen
    from racetrack.verify.verification import Limits, Verification


@click.command(cls=Command)
def verify(limits: "Limits | None" = None) -> None:
    """Compare every view of the engine with its sources, on the stack that is up.

    Load the demo first; `./race up` prints how. The load is paused during the comparison.
    The command leaves one folder in logs/. The exit code is 1 if a view is wrong.

    \b
    Example:
        ./race verify
    """
    from racetrack import engines
    from racetrack.errors import UsageError
    from racetrack.probes.broker import TopicOffsets
    from racetrack.probes.loadgen import Control
    from racetrack.results.folder import named_folder
    from racetrack.stack.runtime import NO_STACK_IS_UP, running_stack
    from racetrack.terminal import Screen
    from racetrack.verify.verification import Verification
    from racetrack.workloads.contract import find_workload

    screen = Screen()
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
                found = verify_views(engine, stack, control, offsets, make, folder, screen)
            wrong = report(engine, found, folder, screen)
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
            found = make(settle(control, offsets), folder, status.update).run()
    finally:
        control.resume(rates)
    if len(found.named(ViewStatus.ABSENT)) == len(found.views):
        how = "\n".join(f"  {line}" for line in engine.usage_hints(stack))
        raise RacetrackError(
            f"{engine.title} has none of the demo's views: the demo is not loaded there.\n{how}"
        )
    return found


def report(engine: "Engine", found: "Verified", folder: Path, screen: "Screen") -> str | None:
    """Write and print the result. Return the names of the views that are wrong, if any."""
    from racetrack.analysis.outcome import wrong_views
    from racetrack.report import summary
    from racetrack.results.folder import shown
    from racetrack.results.json_file import write_json

    write_json(folder / "verified.json", found.model_dump(mode="json", exclude_unset=True))
    wrong = wrong_views(found)
    screen.heading(f"{engine.title}: {wrong or 'every view is right'}")
    for line in summary.describe_verification(found):
        screen.say(line)
    screen.say(f"  logs        {shown(folder)}")
    return wrong
