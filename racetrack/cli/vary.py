"""`./race vary`: varies one setting."""

import click

from racetrack.cli.many_runs import REPEAT_OPTION, SAMPLES_OPTION, WAIT_OPTION, carry_out_plan
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    EXIT_CODES,
    WORKLOAD_OPTION,
    ExampleCommand,
    engine_argument,
    errors_to_exit_codes,
    overrides_of,
)
from racetrack.settings import load
from racetrack.sweep_record import Sweep


@click.command(cls=ExampleCommand, epilog=EXIT_CODES)
@engine_argument
@click.argument("setting", metavar="SETTING")
@click.argument("values", metavar="VALUE,VALUE...")
@click.option(
    "--rate",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Pageviews per second; at 0 the engine is idle except for a few purchases.",
)
@REPEAT_OPTION
@WAIT_OPTION
@SAMPLES_OPTION
@DECIDE_OPTION
@WORKLOAD_OPTION
def vary(
    engine: str,
    setting: str,
    values: str,
    rate: int,
    repeat: int,
    wait: float,
    samples: int,
    decide_within: float,
    workload: str | None,
) -> None:
    """Run ENGINE with each value of one setting of .env, to see the effect on its CPU and memory.

    \b
    Examples:
        ./race vary {engine} KAFKA_HEAP 512m,1g,2g --rate 5000
        ./race vary {engine} PAGEVIEWS_PARTITIONS 1,6 --repeat 1
        ./race vary {engine} ENGINE_CPUS 0,0-1,0-3 --rate 35000
    """
    from racetrack.run.sweep import require_heeded

    each, fixed = values.split(","), overrides_of(workload)
    with errors_to_exit_codes():
        for value in each:
            # Refuse a bad value before the first run, not at its turn.
            load({**fixed, setting: value})
        require_heeded(setting, engine, load(fixed))
    plan = Sweep(
        engines=(engine,),
        rates=(rate,),
        repeat=repeat,
        wait_s=wait,
        samples=samples,
        delay_s=1.0,
        decide_within_s=decide_within,
        settings=dict(fixed),
        vary=setting,
        values=tuple(each),
    )
    carry_out_plan(plan, None)
