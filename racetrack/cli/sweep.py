"""`./race sweep` and `vary`: many runs by a plan, of engines or with values of one setting."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from racetrack import terminal
from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    ENGINES,
    FAULT_OPTION,
    LOAD_OPTION,
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Offered,
    Rate,
    Rates,
    engine_argument,
    errors_to_exit_codes,
    guarded,
    load_settings,
    overrides_of,
    resume_option,
    settle_option,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.results.sweep import Sweep
    from racetrack.terminal import Screen
    from racetrack.workloads.load_profile import LoadProfile

SAMPLE_EVERY_S = 1.0
FIXED_AS_PUBLISHED = ("rates", "repeat", "settle", "samples", "workload", "faults", "load")
CarryOut = Callable[[Path, "Screen", terminal.Guard], bool]


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all runs of a plan to a command, which receives them as the argument
    `plan`: a `Sweep` that still lacks engines and, without --load, rates."""

    @LOAD_OPTION
    @click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=3,
        show_default=True,
        help="Number of runs with the same engine, rate and settings.",
    )
    @settle_option("60s")
    @click.option(
        "--samples",
        type=click.IntRange(min=1),
        default=30,
        show_default=True,
        help="Number of samples of top, a second apart. 30 usually suffice for a verdict, 10"
        " seldom.",
    )
    @DECIDE_OPTION
    @VERIFY_OPTION
    @FAULT_OPTION
    @WORKLOAD_OPTION
    @functools.wraps(command)
    def with_plan(
        *args: Any,
        load: "LoadProfile | None",
        repeat: int,
        settle: float,
        samples: int,
        decide_within: float,
        verify: bool,
        faults: tuple[str, ...],
        workload: str | None,
        **options: Any,
    ) -> Any:
        from racetrack.results.sweep import Sweep

        offered = Offered.of(load, 0, samples, SAMPLE_EVERY_S)
        plan = Sweep(
            rates=(offered.rate_per_s,) if load else (),
            load=offered.load,
            repeat=repeat,
            wait_s=settle,
            samples=offered.samples,
            delay_s=SAMPLE_EVERY_S,
            decide_within_s=decide_within,
            verify=verify,
            faults=faults,
            settings=dict(overrides_of(workload)),
        )
        return command(*args, plan=plan, **options)

    return with_plan


def carry_out_plan(
    plan: "Sweep", resume: Path | None, output: Output, gate: Gate, carry_out: CarryOut | None
) -> None:
    """Run the plan, or the remaining runs of the sweep in the folder `resume`. Exit with the exit
    code of the sweep. `carry_out` makes the runs, by default `racetrack.run.sweep.carry_out`."""
    from racetrack.analysis import table
    from racetrack.report.render import document
    from racetrack.report.sheet import sheet
    from racetrack.report.summary import describe_run
    from racetrack.results.folder import read_plan, shown
    from racetrack.results.sweep import Sweep
    from racetrack.run import sweep
    from racetrack.run.experiment import run_once

    screen = output.screen()
    with guarded(screen) as guard:
        load_settings()
        plan = read_plan(resume, Sweep) if resume else plan
        sweep.require_possible(plan)
        with machine_lock():
            folder = resume or sweep.begin(plan)
            try:
                make_run = functools.partial(run_once, describe=describe_run)
                carry_out = carry_out or functools.partial(sweep.carry_out, run_once=make_run)
                all_ok = carry_out(folder, screen, guard)
            except terminal.Interrupted:
                screen.say(f"To go on later: ./race sweep --resume {shown(folder)}")
                raise
        if plan.as_published:
            _show_as_published(folder, screen)
        screen.say(f"Done. To see the table: ./race report {shown(folder)}")
        failed = 0
        if output.files or gate.conditions:
            made = table.read([folder])
            output.write(document(sheet(made, "runs")))
            failed = gate.exit_code(made.rows, screen)
    sys.exit(failed if all_ok else 1)


def _show_as_published(folder: Path, screen: "Screen") -> None:
    from racetrack.analysis import table
    from racetrack.report.reference import beside_reference
    from racetrack.results.sweep import article

    for line in beside_reference(article(), table.read([folder])):
        screen.say(line)


@click.command(cls=MeasuringCommand)
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
@resume_option("runs of a sweep that was interrupted, with the options in its plan")
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


@click.command(cls=MeasuringCommand)
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
        ./race vary dh SHOP_PAGEVIEW_BYTES 200,1000 --load 'spike 5k 50k 10s'
        ./race vary dh ENGINE_CPUS 0,0-1 --rate 35k
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
