"""`./race vary`: runs an engine with several values of one setting."""

import click

from racetrack.cli.many_runs import REPEAT_OPTION, SAMPLES_OPTION, WAIT_OPTION, carry_out_plan
from racetrack.cli.outputs import Gate, Output, output_options
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    FAULT_OPTION,
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Command,
    Rate,
    engine_argument,
    errors_to_exit_codes,
    overrides_of,
)


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
@REPEAT_OPTION
@WAIT_OPTION
@SAMPLES_OPTION
@DECIDE_OPTION
@VERIFY_OPTION
@FAULT_OPTION
@WORKLOAD_OPTION
@output_options
def vary(
    engine: str,
    setting: str,
    values: str,
    rate: int,
    repeat: int,
    wait: float,
    samples: int,
    decide_within: float,
    verify: bool,
    faults: tuple[str, ...],
    workload: str | None,
    output: Output,
) -> None:
    """Run ENGINE with each value of one setting of .env, to see its effect on CPU and memory.

    Values that contain commas, such as lists of cores, are not possible.

    \b
    Examples:
        ./race vary dh DEEPHAVEN_HEAP 2g,4g,8g --rate 5k
        ./race vary dh PAGEVIEWS_PARTITIONS 1,6 --repeat 1
        ./race vary dh SHOP_KEY_SKEW 0,0.8,1.2 --rate 5k
        ./race vary dh ENGINE_CPUS 0,0-1,0-3 --rate 35k
    """
    from racetrack.config import load
    from racetrack.results.sweep import Sweep
    from racetrack.run.sweep import require_applicable

    each, fixed = values.split(","), overrides_of(workload)
    with errors_to_exit_codes():
        for value in each:
            # Report an invalid value before the first run.
            load({**fixed, setting: value})
        require_applicable(setting, engine, load(fixed))
    plan = Sweep(
        engines=(engine,),
        rates=(rate,),
        repeat=repeat,
        wait_s=wait,
        samples=samples,
        delay_s=1.0,
        decide_within_s=decide_within,
        verify=verify,
        faults=faults,
        settings=dict(fixed),
        vary=setting,
        values=tuple(each),
    )
    carry_out_plan(plan, None, output, Gate())
