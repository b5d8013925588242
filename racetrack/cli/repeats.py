"""Carries out plans of repeated runs: comparisons and scaling measurements."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from racetrack import terminal
from racetrack.cli.parameters import load_settings
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.results.repeats import RepeatedRuns
    from racetrack.terminal import Screen

Plan = TypeVar("Plan", bound="RepeatedRuns")

SEED_OPTION = click.option(
    "--seed", type=int, help="Seed of the random order. By default a random one, which is printed."
)


def carry_out(
    plan: Plan,
    resume: Path | None,
    screen: "Screen",
    describe_plan: Callable[[Plan], Sequence[str]],
    measure: Callable[[Path], Plan],
) -> tuple[Path, Plan]:
    """Check and print the plan, and make its remaining measurements. Return the folder and the
    record.

    Raises:
        RacetrackError: the plan is not possible, or a cause other than an engine ended it.
        Interrupted: a signal was received; the command to go on has been printed.
    """
    from racetrack.results.folder import shown
    from racetrack.run.repeats import begin, require_possible

    load_settings()
    require_possible(plan)
    for line in describe_plan(plan):
        screen.say(line)
    with machine_lock():
        folder = resume or begin(plan)
        try:
            return folder, measure(folder)
        except terminal.Interrupted:
            command = click.get_current_context().info_name
            screen.say(f"To go on later: ./race {command} --resume {shown(folder)}")
            raise


def outcome_code(record: "RepeatedRuns") -> int:
    """Return the exit code: 1 if a piece failed, otherwise 5 if a piece is void, otherwise 0."""
    from racetrack.analysis.outcome import exit_code

    codes = {exit_code(piece.outcome) for piece in record.pieces}
    return 1 if 1 in codes else max(codes, default=1)
