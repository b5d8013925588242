"""`./race sweep`: every engine at every rate."""

from pathlib import Path

import click
from click.core import ParameterSource

from racetrack import engines
from racetrack.cli.many_runs import REPEAT_OPTION, SAMPLES_OPTION, WAIT_OPTION, carry_out_plan
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    EXIT_CODES,
    WORKLOAD_OPTION,
    ExampleCommand,
    Numbers,
    errors_to_exit_codes,
    overrides_of,
)
from racetrack.sweep_record import Sweep

RESUME_OPTION = click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of a sweep that was interrupted: run what is missing.",
)


@click.command(cls=ExampleCommand, epilog=EXIT_CODES)
@click.argument("names", metavar="ENGINE...", nargs=-1, type=click.Choice(engines.engine_names()))
@click.option("--rates", type=Numbers(), default="50,5000,35000", show_default=True)
@REPEAT_OPTION
@WAIT_OPTION
@SAMPLES_OPTION
@DECIDE_OPTION
@WORKLOAD_OPTION
@click.option(
    "--as-published",
    is_flag=True,
    help="The experiment of 2022 as it was: its rates, times, samples, heap and purchases; at the"
    " end its table, with what was measured here beside it.",
)
@RESUME_OPTION
@click.pass_context
def sweep(
    context: click.Context,
    names: tuple[str, ...],
    rates: list[int],
    repeat: int,
    wait: float,
    samples: int,
    decide_within: float,
    workload: str | None,
    as_published: bool,
    resume: Path | None,
) -> None:
    """Run every ENGINE at every rate, on a fresh stack each time; engines take turns.

    \b
    Examples:
        ./race sweep {engine} --as-published
        ./race sweep {engine} --rates 500,5000 --repeat 3
        ./race sweep --resume logs/2026.11.20.18.04.43_UTC_sweep
        ./race report logs/2026.11.20.18.04.43_UTC_sweep
    """
    if not names and not resume:
        raise click.UsageError("Name at least one ENGINE, or a sweep to --resume.")
    if as_published:
        plan = _as_published(context, names, decide_within)
    else:
        plan = Sweep(
            engines=tuple(names),
            rates=tuple(rates),
            repeat=repeat,
            wait_s=wait,
            samples=samples,
            delay_s=1.0,
            decide_within_s=decide_within,
            settings=dict(overrides_of(workload)),
        )
    carry_out_plan(plan, resume)


def _as_published(context: click.Context, names: tuple[str, ...], decide_within_s: float) -> Sweep:
    """The experiment as it was has its own rates, times and workload."""
    from racetrack.run.sweep import as_published

    for name in ("rates", "repeat", "wait", "samples", "workload"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} can't be chosen with --as-published.")
    with errors_to_exit_codes():
        return as_published(names, decide_within_s)
