"""`./race sweep`: runs every engine at every rate."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from racetrack.cli.many_runs import CarryOut, carry_out_plan, plan_options
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import ENGINES, Command, Rates, errors_to_exit_codes

if TYPE_CHECKING:
    from racetrack.results.sweep import Sweep

FIXED_AS_PUBLISHED = ("rates", "repeat", "wait", "samples", "workload", "faults", "load")


@click.command(cls=Command)
@click.argument("names", metavar="ENGINE...", nargs=-1, type=ENGINES)
@click.option(
    "--rates",
    type=Rates(),
    default="50,5000,35000",
    show_default=True,
    help="Rates with commas between them, in pageviews per second, such as 500,5k.",
)
@plan_options
@click.option(
    "--as-published",
    is_flag=True,
    help="Repeat the experiment of 2022 with its rates, durations, samples, heap and purchases. At"
    " the end its results are shown next to the new ones.",
)
@click.option(
    "--resume",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Make the remaining runs of a sweep that was interrupted, with the options in its plan.",
)
@output_options
@gate_options
@click.pass_context
def sweep(
    context: click.Context,
    names: tuple[str, ...],
    rates: list[int],
    plan: "Sweep",
    as_published: bool,
    resume: Path | None,
    output: Output,
    gate: Gate,
    carry_out: CarryOut | None = None,
) -> None:
    """Run every ENGINE at every rate, on a fresh stack each time. Engines alternate.

    The sweep's folder in logs/ contains the plan. Each run has its own folder in logs/.

    \b
    Examples:
        ./race sweep dh --as-published
        ./race sweep dh flink --rates 500,5k --repeat 3
        ./race sweep dh flink --load 'spike 5k 50k 10s' --repeat 2
        ./race sweep dh --rates 5k --csv dh.csv --fail-if fell_behind
        ./race sweep dh --rates 5k --repeat 1 --fault kill:engine@30s --verify
        ./race sweep --resume logs/2026.11.20.18.04.43_UTC_sweep
        ./race report logs/2026.11.20.18.04.43_UTC_sweep
    """
    if not names and not resume:
        raise click.UsageError("Name at least one ENGINE, or a sweep to --resume.")
    if as_published:
        plan = _as_published(context, names, plan)
    else:
        plan = plan.model_copy(update={"engines": names, "rates": plan.rates or tuple(rates)})
    carry_out_plan(plan, resume, output, gate, carry_out)


def _as_published(context: click.Context, names: tuple[str, ...], plan: "Sweep") -> "Sweep":
    """Return the plan of the experiment of 2022, which has its own rates, durations and
    workload."""
    from racetrack.run.sweep import as_published

    for name in FIXED_AS_PUBLISHED:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = "fault" if name == "faults" else name
            raise click.UsageError(f"--{option} can't be chosen with --as-published.")
    with errors_to_exit_codes():
        published = as_published(names, plan.decide_within_s)
    return published.model_copy(update={"verify": plan.verify})
