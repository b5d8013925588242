"""`./race sweep`: every engine at every rate."""

from pathlib import Path

import click

import engines
from racetrack.cli.many_runs import REPEAT_OPTION, SAMPLES_OPTION, WAIT_OPTION, carry_out_plan
from racetrack.cli.parameters import EXIT_CODES, ExampleCommand, Numbers
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
@RESUME_OPTION
def sweep(
    names: tuple[str, ...],
    rates: list[int],
    repeat: int,
    wait: float,
    samples: int,
    resume: Path | None,
) -> None:
    """Run every ENGINE at every rate, on a fresh stack each time; engines take turns.

    \b
    Examples:
        ./race sweep {engine} --rates 500,5000 --repeat 3
        ./race sweep --resume logs/2026.11.20.18.04.43_UTC_sweep
        ./race report logs/2026.11.20.18.04.43_UTC_sweep
    """
    if not names and not resume:
        raise click.UsageError("Name at least one ENGINE, or a sweep to --resume.")
    plan = Sweep(
        engines=tuple(names),
        rates=tuple(rates),
        repeat=repeat,
        wait_s=wait,
        samples=samples,
        delay_s=1.0,
    )
    carry_out_plan(plan, resume)
