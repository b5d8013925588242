"""`./run_experiment.sh`: one experiment."""

import sys

import click

from racetrack.cli.parameters import (
    DECIDE_OPTION,
    FAULT_OPTION,
    POSITIVE_S,
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Command,
    Duration,
    Rate,
    engine_argument,
    guarded,
    load_settings,
)
from racetrack.machine_lock import machine_lock


@click.command(cls=Command)
@engine_argument
@click.argument("rate", metavar="RATE", type=Rate())
@click.argument("wait", metavar="WAIT", type=Duration())
@click.argument("samples", metavar="SAMPLES", type=click.IntRange(min=1))
@click.argument("delay", metavar="DELAY", type=Duration(POSITIVE_S))
@VERIFY_OPTION
@FAULT_OPTION
@click.option(
    "--print-samples",
    is_flag=True,
    help="Also print top_summary.log: top's samples of each service, as `name=…, tag=…,"
    " samples=[…]`, for scripts.",
)
@DECIDE_OPTION
@WORKLOAD_OPTION
def experiment(
    engine: str,
    rate: int,
    wait: float,
    samples: int,
    delay: float,
    verify: bool,
    faults: tuple[str, ...],
    print_samples: bool,
    decide_within: float,
    workload: str | None,
) -> None:
    """Run one experiment with one engine at one rate, as ./run_experiment.sh does.

    ENGINE is an engine's name (`./race engines` lists them). RATE is in pageviews per second, or
    in what else the workload's main topic has, such as 5000, 5k or 1.5M; at 0 the run measures
    what the engine costs when idle. WAIT is the time to settle, such as 20 or 20s or 2m. Then top
    takes SAMPLES samples, DELAY seconds apart. The run leaves one folder in logs/.

    \b
    Examples:
        ./run_experiment.sh dh 5000 20 10 1.0
        ./run_experiment.sh dh 5k 20s 10 1s --verify
        ./run_experiment.sh dh 2000 20 30 1.0 --fault kill:debezium@30s
    """
    from racetrack.analysis import outcome
    from racetrack.results.folder import read_run
    from racetrack.results.run import RunArguments
    from racetrack.run.experiment import TOP_SUMMARY, require_possible, run_once
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen) as guard:
        settings = load_settings(workload)
        asked = RunArguments(
            pageviews_per_s=rate,
            wait_s=wait,
            samples=samples,
            delay_s=delay,
            verify=verify,
            faults=faults,
            decide_within_s=0 if faults or not rate else decide_within,
        )
        require_possible(engine, asked, settings)
        with machine_lock():
            folder = run_once(engine, asked, settings, screen, guard)
    if print_samples and (summary := folder / TOP_SUMMARY).is_file():
        click.echo(summary.read_text(), nl=False)
    sys.exit(outcome.exit_code(read_run(folder).outcome))
