"""`./race plan`, and what `./race compare` does with a plan: it resolves it, makes its runs, and
shows their results."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from racetrack import plugins, terminal
from racetrack.cli.outputs import Gate, Output
from racetrack.cli.parameters import (
    WORKLOAD_OPTION,
    Command,
    errors_to_exit_codes,
    guarded,
    load_settings,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.analysis.table import Row
    from racetrack.plan.model import Plan
    from racetrack.plan.resolve import Options, ResolvedPlan
    from racetrack.results.experiment import ExperimentRecord

# A Job gets the text of a plan's file in this variable, since it can't read files of this machine.
PLAN_OF_JOB = "RACETRACK_PLAN"

SEED_OPTION = click.option(
    "--seed", type=int, help="Seed of the random order. By default a random one, which is printed."
)
LOADS_OPTION = click.option(
    "--load",
    "loads",
    multiple=True,
    metavar="LOAD",
    help="Load instead of those in the plan: a rate such as 5k, a share of the capacity such as"
    " 80%, or a profile such as 'spike 5k 50k 10s'. The option may be given several times.",
)
REPEATS_OPTION = click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Runs of each variant, instead of the number in the plan.",
)
NO_READS_OPTION = click.option(
    "--no-reads",
    is_flag=True,
    help="Don't read the views. An engine that computes views only when they are read then has no"
    " work.",
)


def _complete(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the plans in `plans/`, and files otherwise."""
    names = sorted(file.stem for file in (plugins.REPO / "plans").glob("*.toml"))
    matching = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return matching or [CompletionItem(incomplete, type="file")]


@click.command(cls=Command)
@click.argument("name", metavar="PLAN", shell_complete=_complete)
@click.argument("engines", metavar="[ENGINE]...", nargs=-1)
@LOADS_OPTION
@REPEATS_OPTION
@NO_READS_OPTION
@WORKLOAD_OPTION
@SEED_OPTION
def plan(
    name: str,
    engines: tuple[str, ...],
    loads: tuple[str, ...],
    repeats: int | None,
    no_reads: bool,
    workload: str | None,
    seed: int | None,
) -> None:
    """Print what a plan measures and how long that takes. Nothing is started.

    PLAN is the name of a file in plans/, or a file. ENGINEs are the variants of a plan that has
    none of its own; otherwise only those are measured.

    \b
    Examples:
        ./race plan quick dh pg
        ./race plan vary 'dh[DEEPHAVEN_HEAP=2g|4g]' --load 5k --load 50k
        ./race plan as-published dh
    """
    from racetrack.plan.resolve import describe

    options = options_of(engines, loads, repeats, seed, workload, not no_reads)
    with errors_to_exit_codes():
        for line in describe(resolved(name, options)):
            click.echo(line)


def options_of(
    variants: Sequence[str],
    loads: Sequence[str],
    repeats: int | None,
    seed: int | None,
    workload: str | None,
    reads: bool,
) -> "Options":
    """Return the options of the command line for a plan."""
    from racetrack.plan.resolve import Options

    return Options(tuple(variants), tuple(loads), repeats, seed, workload, reads)


def resolved(name: str, options: "Options") -> "ResolvedPlan":
    """Resolve a plan.

    Raises:
        UsageError: there is no such plan, or it is not possible.
    """
    from racetrack.plan.resolve import resolve

    return resolve(read_named(name), name, options)


def read_named(name: str) -> "Plan":
    """Read the plan with this name or in this file; in a Job, the one that it was given.

    Raises:
        UsageError: there is no such plan, or it can't be read.
    """
    from racetrack.plan.model import find_plan, parse_plan, read_plan_file

    if text := os.environ.get(PLAN_OF_JOB):
        return parse_plan(text, name)
    return read_plan_file(find_plan(name))


def for_job(name: str | None) -> dict[str, str]:
    """Return the environment variable with the plan of a Job, so that a plan that was changed or is
    only on this machine can be used; it is resolved on the node, with the memory there.

    Raises:
        UsageError: there is no such plan, or it can't be read.
    """
    if not name:
        return {}
    from racetrack.plan.model import find_plan

    read_named(name)
    return {PLAN_OF_JOB: find_plan(name).read_text(encoding="utf-8")}


def measure(planned: "ResolvedPlan | None", resume: Path | None, output: Output, gate: Gate) -> int:
    """Make the runs of a plan, or the remaining runs of the experiment in the folder `resume`, and
    show the results. Return the exit code."""
    from racetrack.plan.resolve import ResolvedPlan, describe
    from racetrack.results.experiment import read_experiment
    from racetrack.results.folder import read_run, shown
    from racetrack.run import runner

    screen = output.screen()
    with guarded(screen) as guard:
        load_settings()
        if resume:
            planned = ResolvedPlan.model_validate(read_experiment(resume).plan)
        assert planned  # noqa: S101
        runner.require_possible(planned)
        for line in describe(planned):
            screen.say(line)
        with machine_lock():
            (cell, *others) = planned.cells
            if not resume and not others and cell.is_single:
                folder = runner.run_single(planned, screen, guard)
                return show_experiment(folder, output, gate) or code_of([read_run(folder).outcome])
            folder = resume or runner.begin(planned, ["./race", *sys.argv[1:]])
            try:
                record = runner.Runner(
                    folder, screen, guard, on_row=lambda row: screen.say(f"  {line_of(row)}")
                ).run()
            except terminal.Interrupted:
                screen.say(f"To go on later: ./race compare --resume {shown(folder)}")
                raise
        return outcome_code(record) or show_experiment(folder, output, gate)


def outcome_code(record: "ExperimentRecord") -> int:
    """Return the exit code: 1 if a run failed, otherwise 5 if a run is void, otherwise 0."""
    last = {run.cell: run.outcome or "unfinished" for run in record.runs}
    return code_of(list(last.values()))


def code_of(outcomes: Sequence[str]) -> int:
    """Return the exit code of outcomes."""
    from racetrack.analysis.outcome import exit_code

    codes = {exit_code(outcome) for outcome in outcomes}
    return 1 if 1 in codes else max(codes, default=1)


def line_of(row: "Row") -> str:
    """Return a line on a window that was just measured."""
    from racetrack.metrics import CAPACITY, METRICS

    if row.outcome != "ok":
        return f"{row.window}: {row.outcome}"
    least = "at least " if row.at_least else ""
    keys = (CAPACITY.key, "lag_p50_ms", "lag_p99_ms", "cpu_s_per_million")
    values = [
        f"{METRICS[key].title} {least if key in row.at_least else ''}"
        f"{METRICS[key].text(row.values[key])}"
        for key in keys
        if key in row.values
    ]
    verdict = row.verdict if row.verdict != "none" else ""
    return f"{row.window}: {'; '.join(filter(None, [', '.join(values), verdict, row.remark]))}"


def show_experiment(folder: Path, output: Output, gate: Gate) -> int:  # noqa: ARG001
    """Print what the folder of an experiment or a run contains. Return the exit code of the
    conditions.

    The reports of tables replace the body of this function.
    """
    from racetrack.analysis import table
    from racetrack.results.folder import shown

    screen, made = output.screen(), table.read([folder])
    for row in made.rows:
        screen.say(f"{row.variant}, repeat {row.repeat}, {line_of(row)}")
    for line in (*made.missing, *made.left_out):
        screen.remark(line)
    screen.say(f"\n{shown(folder)}")
    return 0
