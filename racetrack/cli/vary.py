"""`./race vary`: runs an engine with several values of one setting."""

from typing import TYPE_CHECKING

import click

from racetrack.cli.many_runs import CarryOut, carry_out_plan, plan_options
from racetrack.cli.outputs import Gate, Output, output_options
from racetrack.cli.parameters import Command, Rate, engine_argument, errors_to_exit_codes

if TYPE_CHECKING:
    from racetrack.results.sweep import Sweep


@click.command(cls=Command)
@engine_argument
@click.argument("setting", metavar="SETTING")
@click.argument("values", metavar="VALUE,VALUE...")
@click.option(
    "--rate",
    type=Rate(),
    default="0",
    show_default=True,
    help="Pageviews per second, such as 5k. At 0 the engine is idle except for a few purchases.",
)
@plan_options
@output_options
def vary(
    engine: str,
    setting: str,
    values: str,
    rate: int,
    plan: "Sweep",
    output: Output,
    carry_out: CarryOut | None = None,
) -> None:
    """Run ENGINE with each value of one setting of .env, to see its effect on CPU and memory.

    Values that contain commas, such as lists of cores, are not possible.

    \b
    Examples:
        ./race vary dh DEEPHAVEN_HEAP 2g,4g,8g --rate 5k
        ./race vary dh PAGEVIEWS_PARTITIONS 1,6 --repeat 1
        ./race vary dh SHOP_KEY_SKEW 0,0.8,1.2 --rate 5k
        ./race vary dh SHOP_PAGEVIEW_BYTES 100,1000 --load 'spike 5k 50k 10s'
        ./race vary dh ENGINE_CPUS 0,0-1,0-3 --rate 35k
    """
    from racetrack.config import load
    from racetrack.run.sweep import require_applicable

    each = tuple(values.split(","))
    with errors_to_exit_codes():
        for value in each:
            # Report an invalid value before the first run.
            load({**plan.settings, setting: value})
        require_applicable(setting, engine, load(plan.settings))
    update = {"engines": (engine,), "rates": plan.rates or (rate,), "vary": setting, "values": each}
    carry_out_plan(plan.model_copy(update=update), None, output, Gate(), carry_out)
