"""`./race vary`: runs an engine with several values of one setting."""

from typing import TYPE_CHECKING

import click

from racetrack.cli.many_runs import (
    REPEAT_OPTION,
    SAMPLE_EVERY_S,
    SAMPLES_OPTION,
    WAIT_OPTION,
    carry_out_plan,
)
from racetrack.cli.outputs import Gate, Output, output_options
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    FAULT_OPTION,
    LOAD_OPTION,
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Command,
    Offered,
    Rate,
    engine_argument,
    errors_to_exit_codes,
    overrides_of,
)

if TYPE_CHECKING:
    from racetrack.workloads.load_profile import LoadProfile


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
@LOAD_OPTION
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
    load: "LoadProfile | None",
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
        ./race vary dh SHOP_PAGEVIEW_BYTES 100,1000 --load 'spike 5k 50k 10s'
        ./race vary dh ENGINE_CPUS 0,0-1,0-3 --rate 35k
    """
    from racetrack import config
    from racetrack.results.sweep import Sweep
    from racetrack.run.sweep import require_applicable

    each, fixed = values.split(","), overrides_of(workload)
    with errors_to_exit_codes():
        for value in each:
            # Report an invalid value before the first run.
            config.load({**fixed, setting: value})
        require_applicable(setting, engine, config.load(fixed))
    offered = Offered.of(load, rate, samples, SAMPLE_EVERY_S)
    plan = Sweep(
        engines=(engine,),
        rates=(offered.rate_per_s,),
        load=offered.load,
        repeat=repeat,
        wait_s=wait,
        samples=offered.samples,
        delay_s=SAMPLE_EVERY_S,
        decide_within_s=decide_within,
        verify=verify,
        faults=faults,
        settings=dict(fixed),
        vary=setting,
        values=tuple(each),
    )
    carry_out_plan(plan, None, output, Gate())
