"""`./race compare`: compares engines by a plan, or recorded runs, with intervals."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack import plugins, terminal
from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import (
    complete_engines,
    errors_to_exit_codes,
    guarded,
    load_settings,
    refuse_others,
    resume_option,
)
from racetrack.cli.plans import complete_plans, line_of, plan_options, resolved, slow_hour
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.analysis.table import Place, Row, Table
    from racetrack.plan.resolve import Options, ResolvedPlan
    from racetrack.report.sheet import Note
    from racetrack.results.experiment import ExperimentRecord

AGAINST = "--against"
# Makes the runs of a plan, as `carry_out`.
MakeRuns = Callable[..., "tuple[Path, ExperimentRecord]"]


class CompareCommand(MeasuringCommand):
    """A command whose option `--against` takes several paths."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `--against` before each further path after `--against`, as click requires."""
        words: list[str] = []
        follows = False
        for number, word in enumerate(args):
            is_first = number > 0 and args[number - 1] == AGAINST
            follows = is_first or (follows and Path(word).exists())
            words += [AGAINST, word] if follows and not is_first else [word]
        return super().parse_args(ctx, words)


@click.command(cls=CompareCommand)
@click.argument("names", metavar="ENGINE|FOLDER...", nargs=-1, shell_complete=complete_engines)
@click.option(
    "--plan",
    metavar="PLAN",
    shell_complete=complete_plans,
    help="What to measure: the name of a file in plans/, by default full, or a file"
    " (docs/plans.md). `./race plan` prints what a plan does.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="The same as --plan quick: a first answer with wider intervals. Two engines take about 13"
    " minutes on two cores.",
)
@plan_options
@resume_option("runs of a plan that was interrupted")
@output_options
@gate_options
def compare(
    names: tuple[str, ...],
    plan: str | None,
    quick: bool,
    options: "Options",
    resume: Path | None,
    output: Output,
    gate: Gate,
    make_runs: MakeRuns | None = None,
) -> None:
    """Compare engines, or recorded runs. Print a sentence for each question, with intervals, and a
    table.

    Each ENGINE is measured according to a plan: several times on a fresh stack, at several loads
    and at saturation, in random order. An ENGINE may have settings: 'dh[DEEPHAVEN_HEAP=2g|4g]' are
    two variants. With FOLDERs of runs or experiments, nothing is measured: two folders are compared
    with each other, or all folders with those after --against. Versions and settings in which they
    differ are printed. docs/compare.md describes when engines count as different.

    \b
    Examples:
        ./race compare dh kstreams --quick
        ./race compare dh flink kstreams --load 2k,10k,20k --json -
        ./race compare 'dh[DEEPHAVEN_HEAP=2g|4g]' --plan vary --load 5k
        ./race compare dh flink --plan sweep --load 500,5k
        ./race compare 'flink[ENGINE_REPLICAS=1|2|4]' --plan scale --load 50k
        ./race compare --plan my.toml
        ./race compare --resume logs/2026.11.26.05.10.00_UTC_quick
        ./race compare logs/old_UTC_quick logs/new_UTC_quick
        ./race compare logs/*_UTC_dh_5000 --against results/shop/m/dh@42.7.json \\
            --fail-if 'cpu_s_per_million>+10%'
    """
    if plan and quick:
        raise click.UsageError("--quick is --plan quick. Name one plan.")
    if resume:
        refuse_others("resume", "--resume continues a plan as it began.")
    if not (names or plan or resume):
        raise click.UsageError("Name engines or folders to compare, a --plan, or one to --resume.")
    folders = [name for name in names if Path(name).exists() and name not in plugins.engine_names()]
    if gone := [name for name in names if "/" in name and "[" not in name and name not in folders]:
        raise click.UsageError(f"There is no folder or file {gone[0]}.")
    if folders and len(folders) < len(names):
        raise click.UsageError(f"{folders[0]} is no engine. Name either engines or folders.")
    if folders:
        refuse_others("names", "Folders are compared, nothing is measured.")
        sys.exit(_compare_recorded(names, output, gate))
    screen, planned = output.screen(), None
    with guarded(screen) as guard:
        if not resume:
            chosen = plan or ("quick" if quick else "full")
            planned = resolved(chosen, replace(options, variants=names))
        load_settings()
        folder, record = (make_runs or carry_out)(planned, resume, output, gate, guard)
        code = show(folder, record, output, gate) or outcome_code(record)
    sys.exit(code)


def carry_out(
    planned: "ResolvedPlan | None",
    resume: Path | None,
    output: Output,
    gate: Gate,
    guard: terminal.Guard,
    *,
    wanted: str = "",
    quiet: bool = False,
) -> "tuple[Path, ExperimentRecord]":
    """Make the runs of a plan; return the folder of the experiment and its record. The folder
    `resume` must be of the plan `wanted`, if one is named. With `quiet`, only the progress of the
    runs is printed.

    Raises:
        RacetrackError: the plan is not possible, the baseline is not comparable, or a cause other
            than an engine ended it.
        Interrupted: a signal was received; the command to go on has been printed.
    """
    from rich.console import Console

    from racetrack.config import load
    from racetrack.errors import UsageError
    from racetrack.plan.describe import describe
    from racetrack.plan.resolve import recorded
    from racetrack.report.summary import describe_run
    from racetrack.results.experiment import read_experiment
    from racetrack.results.folder import shown
    from racetrack.run import runner
    from racetrack.run.page_cache import PageCache, gives_memory_back
    from racetrack.terminal import Screen

    def where(row: "Row") -> str:
        return f"; {shown(row.folder)}" if quiet and row.folder else ""

    screen = output.screen()
    if not planned:
        assert resume  # noqa: S101
        record = read_experiment(resume)
        if wanted and record.name != wanted:
            raise UsageError(f"{resume} is of the plan {record.name}, not of {wanted}.")
        planned = recorded(record)
    planned = runner.with_runtime(planned, screen.say, resume)
    gate.require_comparable((planned.workload, *runner.require_possible(planned)))
    for line in (*describe(planned), *slow_hour()):
        screen.say(line)
    with machine_lock():
        if resume:
            runner.keep_runtime(resume)
        folder = resume or runner.begin(planned, ["./race", *sys.argv[1:]])
        command = click.get_current_context().info_name
        go_on = f"./race {command} --resume {shlex.quote(shown(folder))}"
        screen.say(f"  into {shown(folder)}; after an interruption: {go_on}")
        keeps_memory = load().noise_gate and gives_memory_back()
        try:
            made = runner.Runner(
                folder,
                screen,
                guard,
                on_row=lambda row: screen.say(f"  {line_of(row)}{where(row)}"),
                describe=describe_run,
                runs_on=Screen(Console(quiet=True)) if quiet else None,
                before_stack=PageCache(folder, screen.say).fill if keeps_memory else None,
            )
            return folder, made.run()
        except terminal.Interrupted:
            screen.say(f"To go on later: {go_on}")
            raise


def show(folder: Path, record: "ExperimentRecord", output: Output, gate: Gate) -> int:
    """Print what an experiment has shown, beside the baseline if there is one. Return the exit code
    of the conditions."""
    from racetrack.analysis import table
    from racetrack.plan.describe import conditions
    from racetrack.plan.resolve import recorded
    from racetrack.report.reference import beside_reference, read_reference
    from racetrack.report.sheet import sheet
    from racetrack.results.folder import shown

    plan = recorded(record)
    screen, made = output.screen(), table.read([folder])
    whole, lines = made, conditions(plan)
    if gate.baseline:
        names = ("now", "before")
        whole = table.merged(made, gate.baseline, names)
        lines += table.differences(made, gate.baseline, names)
    notes = _notes(whole, made, lines)
    baseline = None if gate.baseline else plan.baseline or None
    output.show(replace(sheet(whole, "comparison", notes, baseline=baseline), rows=made.rows))
    if plan.reference:
        for line in beside_reference(read_reference(plan.reference), made):
            screen.say(line)
    screen.say(f"\n{shown(folder)}")
    return gate.exit_code(made.rows, screen)


def _notes(whole: "Table", made: "Table", lines: Sequence[str]) -> "Mapping[Place, Sequence[Note]]":
    """Return the conditions of an experiment for each place, and the warnings about its runs."""
    from racetrack.report.runs import notes_of, read_runs
    from racetrack.report.sheet import Note

    warnings = notes_of(read_runs(made), made.rows)
    return {
        place: [*(Note(line) for line in lines), *warnings.get(place, ())] for place in whole.places
    }


def _compare_recorded(names: Sequence[str], output: Output, gate: Gate) -> int:
    """Compare recorded runs and print the result. Return the exit code, which depends on
    `--fail-if`."""
    from racetrack.analysis import table
    from racetrack.errors import UsageError
    from racetrack.report.gate import require_comparable
    from racetrack.report.sheet import Note, sheet

    screen = output.screen()
    with errors_to_exit_codes():
        paths = [Path(name) for name in names]
        if not gate.baseline and len(paths) != 2:
            raise UsageError("Name two folders, or use --against for those to compare with.")
        mine = table.read(paths if gate.baseline else paths[:1])
        others = gate.baseline or table.read(paths[1:])
        places = {place.comparable for place in mine.places}
        require_comparable(places, others.rows)
        sides = ("A", "B")
        whole = table.merged(mine, others, sides)
        lines = table.differences(mine, others, sides)
        notes = {place: [Note(line) for line in lines] for place in whole.places}
        output.show(replace(sheet(whole, "comparison", notes), rows=mine.rows))
        return gate.exit_code(mine.rows, screen)


def outcome_code(record: "ExperimentRecord") -> int:
    """Return the exit code: 1 if a run failed, otherwise 5 if a run is void, otherwise 0."""
    from racetrack.analysis.outcome import exit_code

    last = {run.cell: run.outcome or "unfinished" for run in record.runs}
    return exit_code(*last.values())
