"""Options shared by commands that make many runs, and the execution of their plan."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from racetrack import terminal
from racetrack.cli.outputs import Gate, Output
from racetrack.cli.parameters import (
    DECIDE_OPTION,
    FAULT_OPTION,
    LOAD_OPTION,
    VERIFY_OPTION,
    WORKLOAD_OPTION,
    Duration,
    Offered,
    guarded,
    load_settings,
    overrides_of,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.results.sweep import Sweep
    from racetrack.terminal import Screen
    from racetrack.workloads.load_profile import LoadProfile

SAMPLE_EVERY_S = 1.0
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
    @click.option(
        "--wait",
        type=Duration(),
        default="60s",
        show_default=True,
        help="Time to settle before samples are taken. Java compiles for about a minute.",
    )
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
        wait: float,
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
            wait_s=wait,
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
    from racetrack.report.collect import collect
    from racetrack.report.export import Document, flat_record
    from racetrack.results.folder import read_plan, shown
    from racetrack.results.sweep import Sweep
    from racetrack.run import sweep

    screen = output.screen()
    with guarded(screen) as guard:
        load_settings()
        plan = read_plan(resume, Sweep) if resume else plan
        sweep.require_possible(plan)
        with machine_lock():
            folder = resume or sweep.begin(plan)
            try:
                all_ok = (carry_out or sweep.carry_out)(folder, screen, guard)
            except terminal.Interrupted:
                screen.say(f"To go on later: ./race sweep --resume {shown(folder)}")
                raise
        if plan.as_published:
            _show_as_published(folder, screen)
        screen.say(f"Done. To see the table: ./race report {shown(folder)}")
        failed = 0
        if output.files or gate.conditions:
            records = [flat_record(run) for run in collect([folder]).runs]
            output.write(Document("runs", records))
            failed = gate.exit_code(records, screen)
    sys.exit(failed if all_ok else 1)


def _show_as_published(folder: Path, screen: "Screen") -> None:
    from racetrack.report import tables
    from racetrack.report.collect import collect
    from racetrack.results.reference import article

    for line in tables.compare_with_article(article(), collect([folder]).runs):
        screen.say(line)
