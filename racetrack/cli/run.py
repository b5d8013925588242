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
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Duration,
    Offered,
    Rate,
    engines_argument,
    guarded,
    load_settings,
    settle_option,
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
        WORKLOAD_OPTION,
        DECIDE_OPTION,
        PRINT_SAMPLES_OPTION,
        FAULT_OPTION,
        VERIFY_OPTION,
    ):
        command = option(command)
    return command


@click.command(cls=MeasuringCommand)
@engines_argument
@click.option(
    "--rate",
    type=Rate(),
    default="5k",
    show_default=True,
    help="Events per second of the workload's main topic, such as 5000, 5k or 1.5M. At 0 the run"
    " measures what the idle engine costs.",
)
@LOAD_OPTION
@settle_option("20s")
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

    ENGINE is an engine's name (`./race engines` lists them). The run leaves one folder in logs/.
    Engines separated by commas read the same input at the same time; the exit code is 1 if one of
    them failed.

    \b
    Examples:
        ./race run dh
        ./race run dh --rate 5k --settle 20s --samples 10 --every 1s
        ./race run dh --rate 2k --samples 30 --fault kill:debezium@30s --verify
        ./race run dh --load 'spike 5k 50k 10s'
        ./race run dh,pg --rate 5k
        ./race run dh --fail-if fell_behind --fail-if 'lag_p99_ms>2000' --json run.json
        ./race run dh --against logs/2026.03.22.05.04.28_UTC_dh_5000 \\
            --fail-if 'cpu_s_per_million>+10%'
    """
    _run(Offered.of(load, rate, samples, every), settle, every, **options)


@click.command(cls=MeasuringCommand)
@engines_argument
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
    _run(Offered(rate, samples), wait, delay, **options)


def _run(
    offered: Offered,
    settle_s: float,
    every_s: float,
    *,
    engine: str,
    verify: bool,
    faults: tuple[str, ...],
    print_samples: bool,
    decide_within: float,
    workload: str | None,
    output: Output,
    gate: "Gate",
    make_run: MakeRun | None = None,
) -> None:
    """Make a run and write its record. Exit with the code of the outcome or, if a condition holds,
    of `--fail-if`. `make_run` makes the run, by default `run_once`."""
    from racetrack.analysis import outcome, table
    from racetrack.report.render import document
    from racetrack.report.sheet import sheet
    from racetrack.report.summary import describe_run
    from racetrack.results.run import RunArguments
    from racetrack.run.experiment import TOP_SUMMARY, require_possible, run_once

    extends = not (faults or offered.load) and offered.rate_per_s > 0
    arguments = RunArguments(
        pageviews_per_s=offered.rate_per_s,
        load=offered.load,
        wait_s=settle_s,
        samples=offered.samples,
        delay_s=every_s,
        verify=verify,
        faults=faults,
        decide_within_s=decide_within if extends else 0,
    )
    screen = output.screen()
    with guarded(screen) as guard:
        settings = load_settings(workload)
        require_possible(engine, arguments, settings)
        with machine_lock():
            make_run = make_run or partial(run_once, describe=describe_run)
            folder = make_run(engine, arguments, settings, screen, guard)
        if print_samples and (summary := folder / TOP_SUMMARY).is_file():
            click.echo(summary.read_text(), nl=False)
        made = table.read([folder])
        output.write(document(sheet(made, "runs")))
        outcomes = [row.outcome for row in made.rows]
        code = outcome.exit_code(*outcomes) or gate.exit_code(made.rows, screen)
    sys.exit(code)
