"""`./race verify`: compares views with their sources on a running stack."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack.cli.parameters import Command, guarded, load_settings, replaceable
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.engines.contract import Engine
    from racetrack.results.verification import Verified
    from racetrack.stack.contract import Stack
    from racetrack.terminal import Screen


@click.command(cls=Command)
def verify() -> None:
    """Compare every view of the engine with its sources, on the stack that is up.

    Load the demo first; `./race up` prints how. The load is paused during the comparison.
    The command leaves one folder in logs/. The exit code is 1 if a view is wrong.

    \b
    Example:
        ./race verify
    """
    from racetrack import engines
    from racetrack.analysis.outcome import wrong_views
    from racetrack.errors import UsageError
    from racetrack.report import summary
    from racetrack.results.folder import named_folder, shown
    from racetrack.results.json_file import write_json
    from racetrack.stack.runtime import NO_STACK_IS_UP, running_stack
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        settings = load_settings()
        up = replaceable(running_stack)(settings)
        if up is None:
            raise UsageError(NO_STACK_IS_UP)
        with machine_lock():
            stack, running = up
            engine = replaceable(engines.find_engine)(running.engine)
            folder = named_folder(settings.logs_folder, f"{engine.name}_verify")
            found = _verify(engine, stack, folder, screen)
            write_json(folder / "verified.json", found.model_dump(mode="json", exclude_unset=True))
            wrong = wrong_views(found)
            screen.heading(f"{engine.title}: {wrong or 'every view is right'}")
            for line in summary.describe_verification(found):
                screen.say(line)
            screen.say(f"  logs        {shown(folder)}")
    sys.exit(1 if wrong else 0)


def _verify(engine: "Engine", stack: "Stack", folder: Path, screen: "Screen") -> "Verified":
    """Verify the views in the same way as an experiment with `--verify`.

    Raises:
        RacetrackError: no view exists, or a source can't be read.
    """
    from racetrack.errors import RacetrackError
    from racetrack.probes.broker import TopicOffsets
    from racetrack.probes.loadgen import Control, settle
    from racetrack.results.verification import ViewStatus
    from racetrack.verify.verification import Verification
    from racetrack.workloads.contract import find_workload

    where = stack.endpoints
    address = where.loadgen_host, where.loadgen_port
    with replaceable(Control)(*address, lambda s: screen.say(f"  {s}")) as control:
        rates = control.pause()
        try:
            main_topic = find_workload(stack.settings.workload).topic.name
            settled = settle(control, replaceable(TopicOffsets)(where.kafka, main_topic))
            with screen.live("verifying") as status:
                make = replaceable(Verification)
                found = make(engine, stack, settled, folder, status.update).run()
        finally:
            control.resume(rates)
    if len(found.named(ViewStatus.ABSENT)) == len(found.views):
        how = "\n".join(f"  {line}" for line in engine.usage_hints(stack))
        raise RacetrackError(
            f"{engine.title} has none of the demo's views: the demo is not loaded there.\n{how}"
        )
    return found
