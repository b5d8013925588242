"""`./race run` and `./run_experiment.sh`: one run with one engine at one rate."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Output, gate_options, output_options
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    FAULT_OPTION,
    LOAD_OPTION,
    POSITIVE_S,
    QUERIES_OPTION,
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Duration,
    Rate,
    errors_to_exit_codes,
    guarded,
    load_settings,
    refuse_rate,
    variant_argument,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.cli.outputs import Gate
    from racetrack.workloads.load_profile import LoadProfile

MakeRun = Callable[..., Path]

PRINT_SAMPLES_OPTION = click.option(
    "--print-samples",
    is_flag=True,
    help="Also print top_summary.log: top's samples of each service, as `name=…, tag=…,"
    " samples=[…]`, for scripts.",
)


def _shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `./race run` and `./run_experiment.sh` share."""
    for option in (
        gate_options,
        output_options,
        QUERIES_OPTION,
        WORKLOAD_OPTION,
        DECIDE_OPTION,
        PRINT_SAMPLES_OPTION,
        FAULT_OPTION,
        VERIFY_OPTION,
    ):
        command = option(command)
    return command


@click.command(cls=MeasuringCommand)
@variant_argument
@click.option(
    "--rate",
    type=Rate(),
    default="5k",
    show_default=True,
    help="Events per second of the workload's main topic, such as 5000, 5k or 1.5M. At 0 the run"
    " measures what the idle engine costs.",
)
@LOAD_OPTION
@click.option(
    "--settle",
    type=Duration(),
    default="20s",
    show_default=True,
    help="Time to settle before samples are taken. Java compiles for about a minute.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of samples of top.",
)
@click.option(
    "--every",
    type=Duration(POSITIVE_S),
    default="1s",
    show_default=True,
    help="Time between two samples.",
)
@_shared_options
def run(
    rate: int,
    load: "LoadProfile | None",
    settle: float,
    samples: int,
    every: float,
    **options: Any,
) -> None:
    """Run one engine at one rate on a fresh stack, and print what it cost and how far it lagged.

    ENGINE is an engine's name (`./race engines` lists them), with settings if you like:
    'dh[DEEPHAVEN_HEAP=2g]'. The run leaves one folder in logs/. Engines separated by commas read
    the same input at the same time; the exit code is 1 if one of them failed. This is shorthand for
    a plan (docs/plans.md) with one run.

    \b
    Examples:
        ./race run dh
        ./race run dh --rate 5k --settle 20s --samples 10 --every 1s
        ./race run dh --rate 2k --samples 30 --fault kill:debezium@30s --verify
        ./race run dh --load 'spike 5k 50k 10s'
        ./race run dh,pg --rate 5k
        ./race run 'dh[DEEPHAVEN_HEAP=2g]' --rate 5k
        ./race run dh --fail-if fell_behind --fail-if 'lag_p99_ms>2000' --json run.json
        ./race run dh --against logs/2026.03.22.05.04.28_UTC_dh_5000 \\
            --fail-if 'cpu_s_per_million>+10%'
    """
    if load:
        refuse_rate()
    _run(str(load or rate), settle, samples, every, **options)


@click.command(cls=MeasuringCommand)
@variant_argument
@click.argument("rate", metavar="RATE", type=Rate())
@click.argument("wait", metavar="WAIT", type=Duration())
@click.argument("samples", metavar="SAMPLES", type=click.IntRange(min=1))
@click.argument("delay", metavar="DELAY", type=Duration(POSITIVE_S))
@_shared_options
def run_experiment(rate: int, wait: float, samples: int, delay: float, **options: Any) -> None:
    """Run one experiment with one engine at one rate: `./race run` with positional arguments.

    ENGINE is an engine's name (`./race engines` lists them), or several separated by commas, which
    then read the same input at the same time. RATE is in events per second of the workload's main
    topic (pageviews by default), such as 5000, 5k or 1.5M; at 0 the run measures what the idle
    engine costs. WAIT is the time to settle, such as 20 or 20s or 2m. Then top takes SAMPLES
    samples, DELAY seconds apart. The run leaves one folder in logs/.

    \b
    Examples:
        ./run_experiment.sh dh 5000 20 10 1.0
        ./run_experiment.sh dh 5k 20s 10 1s --verify
        ./run_experiment.sh dh,pg 5000 20 10 1.0
        ./run_experiment.sh dh 2000 20 30 1.0 --fault kill:debezium@30s
    """
    _run(str(rate), wait, samples, delay, **options)


def _run(
    load: str,
    settle_s: float,
    samples: int,
    every_s: float,
    *,
    engine: str,
    verify: bool,
    faults: tuple[str, ...],
    print_samples: bool,
    decide_within: float,
    workload: str | None,
    queries: str | None,
    output: Output,
    gate: "Gate",
    make_run: MakeRun | None = None,
) -> None:
    """Make a run and write its record. Exit with the code of the outcome or, if a condition holds,
    of `--fail-if`. `make_run` makes the run, by default `run_once`."""
    from racetrack.analysis import outcome, table
    from racetrack.config import load as settings_with
    from racetrack.plan.model import Phase, Plan, PlannedVariant, Top, Verify, Window
    from racetrack.plan.resolve import Options, resolve
    from racetrack.report.render import document
    from racetrack.report.sheet import sheet
    from racetrack.report.summary import describe_run
    from racetrack.results.folder import read_run
    from racetrack.run.experiment import TOP_SUMMARY, run_once
    from racetrack.run.runner import arguments_of, require_possible, with_runtime

    screen = output.screen()
    with errors_to_exit_codes():
        window = Window(
            window=samples * every_s,
            settle=settle_s,
            loads=(load,),
            top=Top(samples=samples, every=every_s),
            decide_within=decide_within,
            faults=faults,
        )
        phases: tuple[Phase, ...] = (window, Verify(verify=True)) if verify else (window,)
        plan = Plan(variant=(PlannedVariant(of=engine),), phase=phases, cores="shared")
        planned = resolve(plan, engine, Options(workload=workload, queries=queries))
    with guarded(screen) as guard:
        load_settings(workload, queries)
        planned = with_runtime(planned, screen.say)
        require_possible(planned)
        (cell,) = planned.cells
        with machine_lock():
            make_run = make_run or partial(run_once, describe=describe_run)
            arguments, settings = arguments_of(cell), settings_with(planned.settings_of(cell))
            folder = make_run(cell.engine, arguments, settings, screen, guard)
        if print_samples and (summary := folder / TOP_SUMMARY).is_file():
            click.echo(summary.read_text(), nl=False)
        made = table.read([folder])
        output.write(document(sheet(made, "runs")))
        # The record's outcome, not its rows': there, views made wrong by a fault are figures.
        code = outcome.exit_code(read_run(folder).outcome or "unfinished")
        code = code or gate.exit_code(made.rows, screen)
    sys.exit(code)
