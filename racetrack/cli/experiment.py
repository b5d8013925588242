"""`./run_experiment.sh`: one experiment."""

import sys

import click

from racetrack.cli.parameters import (
    DECIDE_OPTION,
    EXIT_CODES,
    WORKLOAD_OPTION,
    ExampleCommand,
    Seconds,
    engine_argument,
    guarded,
    overrides_of,
)
from racetrack.machine_lock import machine_lock
from racetrack.runfolder import read_run
from racetrack.screen import Screen
from racetrack.settings import load


# So that `-5` is refused as a rate, with the reason, and not as an unknown option.
@click.command(
    cls=ExampleCommand, epilog=EXIT_CODES, context_settings={"ignore_unknown_options": True}
)
@engine_argument
@click.argument("rate", metavar="RATE", type=click.IntRange(min=1))
@click.argument("wait", metavar="WAIT", type=Seconds())
@click.argument("samples", metavar="SAMPLES", type=click.IntRange(min=1))
@click.argument("delay", metavar="DELAY", type=Seconds())
@click.option("--verify", is_flag=True, help="At the end, compare every view with the sources.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Cause trouble, counted in seconds from when the rate was set: kill:SERVICE@10s,"
    " kill:SERVICE@10s+5s (it stays dead for 5 s), pause:SERVICE@10s+5s. SERVICE is engine, broker,"
    " debezium or mysql; pause also takes registry and redis. The run goes on until lag is back to"
    " normal, for 120 s at most. You may give this option several times.",
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
    decide_within: float,
    workload: str | None,
) -> None:
    """Run one experiment: ENGINE at RATE pageviews (or what else the workload's main topic has) per
    second; WAIT seconds to settle, then SAMPLES samples of top, DELAY seconds apart. Leaves one
    folder in logs/.

    \b
    Examples:
        ./run_experiment.sh {engine} 5000 20 10 1.0
        ./run_experiment.sh {engine} 5000 20 10 1.0 --verify
        ./run_experiment.sh {engine} 2000 20 30 1.0 --fault kill:debezium@30s
    """
    from racetrack.analysis import outcome
    from racetrack.run.single import run_once
    from racetrack.run_record import RunArguments

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        asked = RunArguments(
            pageviews_per_s=rate,
            wait_s=wait,
            samples=samples,
            delay_s=delay,
            verify=verify,
            faults=faults,
            decide_within_s=0 if faults else decide_within,
        )
        folder = run_once(engine, asked, load(overrides_of(workload)), screen, guard)
    sys.exit(outcome.exit_code(read_run(folder).outcome))
