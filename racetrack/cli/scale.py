"""`./race scale`: measures how the capacity of an engine grows with its replicas."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack.cli.compare import carry_out, outcome_code, show_plan
from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import (
    ENGINES,
    WORKLOAD_OPTION,
    Counts,
    Rate,
    errors_to_exit_codes,
    given_in_environment,
    guarded,
    resume_option,
)
from racetrack.cli.plans import SEED_OPTION

if TYPE_CHECKING:
    from racetrack.results.repeats import ScaleRecord


@click.command(cls=MeasuringCommand)
@click.argument("engine", metavar="ENGINE", required=False, type=ENGINES)
@click.option(
    "--replicas",
    type=Counts(),
    default="1,2,4",
    show_default=True,
    help="Numbers of replicas to measure, at least two. The others are compared with the fewest.",
)
@click.option(
    "--hold",
    type=Rate(1),
    help="Also find the least number of replicas that holds this rate: that keeps up with it, as in"
    " ./race compare.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Give a first answer with wider intervals, from two repeats and shorter windows. Two"
    " numbers of replicas take about 7 minutes.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Runs with each number of replicas, by default 3; with --quick 2.",
)
@WORKLOAD_OPTION
@SEED_OPTION
@resume_option("measurements of a scaling measurement that was interrupted")
@output_options
@gate_options
def scale(
    engine: str | None,
    replicas: list[int],
    hold: int | None,
    quick: bool,
    repeats: int | None,
    workload: str | None,
    seed: int | None,
    resume: Path | None,
    output: Output,
    gate: Gate,
) -> None:
    """Measure the capacity of ENGINE with several numbers of replicas, and find the least number
    that holds a rate.

    Each number is measured several times on a fresh stack: the engine warms up at saturation, then
    its capacity is measured, then its lag at the rate to hold. Numbers alternate in random order.
    All runs have the same number of partitions, which the replicas can share equally unless
    PAGEVIEWS_PARTITIONS is set. `./race engines` shows which engines can be scaled, and where. To
    draw the result: ./race report FOLDER.

    \b
    Examples:
        RUNTIME=kubernetes ./race scale flink --replicas 1,2,4,8
        RUNTIME=kubernetes ./race scale kstreams --replicas 1,2,4 --hold 50k
        ./race scale --resume logs/2026.11.26.05.10.00_UTC_flink_scale
        ./race scale flink --quick --fail-if 'share_of_ideal_pct<70' --json scale.json
    """
    if bool(engine) == bool(resume):
        raise click.UsageError("Name either an engine, or a folder to --resume.")
    if len(set(replicas)) < 2:
        raise click.UsageError("--replicas: name at least two numbers, such as 1,2,4.")
    from racetrack.results.folder import read_plan
    from racetrack.results.repeats import ScaleRecord
    from racetrack.run.scale import ScaleArguments, planned

    with errors_to_exit_codes():
        if resume:
            plan = read_plan(resume, ScaleRecord)
        else:
            arguments = ScaleArguments(
                engine=engine or "",
                replicas=tuple(replicas),
                hold_per_s=hold,
                repeats=repeats,
                is_quick=quick,
                workload=workload,
                seed=seed,
                given=given_in_environment(),
            )
            plan = planned(arguments)
    sys.exit(_measure(plan, resume, output, gate))


def _measure(plan: "ScaleRecord", resume: Path | None, output: Output, gate: Gate) -> int:
    """Carry out a scaling measurement and print its result. Return the exit code."""
    from racetrack.run.scale import Scaling, describe_conditions, describe_plan

    screen = output.screen()
    with guarded(screen) as guard:
        folder, record = carry_out(
            plan, resume, screen, gate, describe_plan, lambda at: Scaling(at, screen, guard).run()
        )
        return show_plan(folder, describe_conditions(record), output, gate) or outcome_code(record)
