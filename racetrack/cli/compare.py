"""`./race compare`: compares engines, or recorded runs, with intervals."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from racetrack import plugins, terminal
from racetrack.cli import plans
from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import (
    WORKLOAD_OPTION,
    Rates,
    errors_to_exit_codes,
    given_in_environment,
    guarded,
    load_settings,
    resume_option,
)
from racetrack.cli.plans import LOADS_OPTION, NO_READS_OPTION, SEED_OPTION
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.results.repeats import ComparisonRecord, RepeatedRuns
    from racetrack.terminal import Screen

AGAINST = "--against"
Plan = TypeVar("Plan", bound="RepeatedRuns")


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


def _complete(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete engines, and files otherwise."""
    found = [name for name in plugins.engine_names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in found] or [CompletionItem(incomplete, type="file")]


@click.command(cls=CompareCommand)
@click.argument("names", metavar="ENGINE|FOLDER...", nargs=-1, shell_complete=_complete)
@click.option(
    "--quick",
    is_flag=True,
    help="Give a first answer with wider intervals, from two repeats at two rates and shorter"
    " windows. Two engines take about 10 minutes on two cores.",
)
@click.option(
    "--rates",
    type=Rates(),
    help="Rates that every engine can sustain, such as 2k,10k,20k. By default a short probe of each"
    " engine finds three; with --quick they are 1k,5k.",
)
@click.option(
    "--plan",
    metavar="PLAN",
    help="What to measure: the name of a file in plans/, or a file (docs/plans.md). --quick is"
    " --plan quick. `./race plan` prints what a plan does.",
)
@LOADS_OPTION
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Runs of each engine, by default 3; with --quick 2; or as in the plan.",
)
@NO_READS_OPTION
@WORKLOAD_OPTION
@SEED_OPTION
@resume_option("measurements of a comparison that was interrupted")
@output_options
@gate_options
def compare(
    names: tuple[str, ...],
    quick: bool,
    plan: str | None,
    rates: list[int] | None,
    loads: tuple[str, ...],
    repeats: int | None,
    no_reads: bool,
    workload: str | None,
    seed: int | None,
    resume: Path | None,
    output: Output,
    gate: Gate,
) -> None:
    """Compare engines, or recorded runs. Print a sentence for each question, with intervals, and a
    table.

    Each ENGINE is measured several times on a fresh stack, at rates that all engines can sustain,
    then at saturation. Engines alternate in random order, while a client reads the views. With
    FOLDERs of runs, sweeps, searches or comparisons, nothing is measured: two folders are compared
    with each other, or all folders with those after --against. Versions and settings in which they
    differ are printed. docs/compare.md describes the phases, and when engines count as different.

    \b
    Examples:
        ./race compare dh pg --quick
        ./race compare dh flink pg --rates 2k,10k,20k --json -
        ./race compare 'dh[DEEPHAVEN_HEAP=2g|4g]' --plan vary --load 5k
        ./race compare --resume logs/2026.11.26.05.10.00_UTC_compare
        ./race compare logs/old_UTC_sweep logs/new_UTC_sweep
        ./race compare logs/*_UTC_dh_5000 --against results/shop/m/dh@42.7.json \\
            --fail-if 'cpu_s_per_million>+10%'
    """
    if is_of_plan(names, plan, loads, resume):
        if plan and quick:
            raise click.UsageError("--quick is --plan quick. Name one plan.")
        given = loads or tuple(map(str, rates or ()))
        options = plans.options_of(names, given, repeats, seed, workload, not no_reads)
        with errors_to_exit_codes():
            chosen = plan or ("quick" if quick else "full")
            resolved = None if resume else plans.resolved(chosen, options)
        sys.exit(plans.measure(resolved, resume, output, gate))
    engines = [name for name in names if name in plugins.engine_names()]
    if not names and not resume:
        raise click.UsageError("Name engines or folders to compare, or a comparison to --resume.")
    if engines and len(engines) < len(names):
        wrong = next(name for name in names if name not in engines)
        raise click.UsageError(f"{wrong!r} is not an engine. Name either engines or folders.")
    if len(set(engines)) < len(engines):
        raise click.UsageError("An engine is named twice. Its repeats already show how it varies.")
    if not engines and not resume:
        sys.exit(_compare_recorded(names, output, gate))
    from racetrack.results.folder import read_plan
    from racetrack.results.repeats import ComparisonRecord
    from racetrack.run.comparison import ComparisonArguments, planned

    arguments = ComparisonArguments(
        engines=tuple(engines),
        rates=tuple(rates or ()),
        repeats=repeats,
        is_quick=quick,
        reads=not no_reads,
        workload=workload,
        seed=seed,
        given=given_in_environment(),
    )
    with errors_to_exit_codes():
        record = read_plan(resume, ComparisonRecord) if resume else planned(arguments)
    sys.exit(_measure(record, resume, output, gate))


def is_of_plan(
    names: Sequence[str], plan: str | None, loads: Sequence[str], resume: Path | None
) -> bool:
    """Return whether a comparison is of a plan: named as one, with its loads, of variants, or of an
    experiment to be resumed."""
    if resume:
        return (resume / "experiment.json").is_file()
    is_variants = any(set(name) & set("[@+") and not Path(name).exists() for name in names)
    return bool(plan or loads or is_variants)


def _measure(plan: "ComparisonRecord", resume: Path | None, output: Output, gate: Gate) -> int:
    """Carry out a comparison and print its result. Return the exit code."""
    from racetrack.run.comparison import Comparison, describe_conditions, describe_plan

    screen = output.screen()
    with guarded(screen) as guard:
        folder, record = carry_out(
            plan,
            resume,
            screen,
            gate,
            describe_plan,
            lambda at: Comparison(at, screen, guard).run(),
        )
        return show_plan(folder, describe_conditions(record), output, gate) or outcome_code(record)


def show_plan(folder: Path, conditions: Sequence[str], output: Output, gate: Gate) -> int:
    """Print what the folder of a plan contains, beside the baseline if there is one. Return the
    exit code of the conditions."""
    from racetrack.analysis import table
    from racetrack.report.runs import notes_of, read_runs
    from racetrack.report.sheet import Note, sheet
    from racetrack.results.folder import shown

    screen, made = output.screen(), table.read([folder])
    whole, more = made, list(conditions)
    if gate.baseline:
        names = ("now", "before")
        whole = table.merged(made, gate.baseline, names)
        more += table.differences(made, gate.baseline, names)
    notes = {
        place: [*(Note(line) for line in more), *of]
        for place, of in {
            **{place: [] for place in whole.places},
            **notes_of(read_runs(made), made.rows),
        }.items()
    }
    output.show(replace(sheet(whole, "comparison", notes), rows=made.rows))
    screen.say(f"\n{shown(folder)}")
    return gate.exit_code(made.rows, screen)


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
        if missing := [path for path in paths if not path.exists()]:
            raise UsageError(
                f"{missing[0]} is neither an engine ({', '.join(plugins.engine_names())}) nor a"
                " folder or file."
            )
        if not gate.baseline and len(paths) != 2:
            raise UsageError("Name two folders, or use --against for those to compare with.")
        mine = table.read(paths if gate.baseline else paths[:1])
        others = gate.baseline or table.read(paths[1:])
        places = {(place.workload, place.runtime) for place in mine.places}
        require_comparable(places, others.rows)
        sides = ("A", "B")
        whole = table.merged(mine, others, sides)
        lines = table.differences(mine, others, sides)
        notes = {place: [Note(line) for line in lines] for place in whole.places}
        output.show(replace(sheet(whole, "comparison", notes), rows=mine.rows))
        return gate.exit_code(mine.rows, screen)


def carry_out(
    plan: Plan,
    resume: Path | None,
    screen: "Screen",
    gate: Gate,
    describe_plan: Callable[[Plan], Sequence[str]],
    measure: Callable[[Path], Plan],
) -> tuple[Path, Plan]:
    """Check and print the plan, and make its remaining measurements. Return the folder and the
    record.

    Raises:
        RacetrackError: the plan is not possible, the baseline is not comparable, or a cause other
            than an engine ended it.
        Interrupted: a signal was received; the command to go on has been printed.
    """
    from racetrack.results.folder import shown
    from racetrack.run.repeats import begin, require_possible

    load_settings()
    require_possible(plan)
    gate.require_comparable((plan.workload, plan.runtime))
    for line in describe_plan(plan):
        screen.say(line)
    with machine_lock():
        folder = resume or begin(plan)
        try:
            return folder, measure(folder)
        except terminal.Interrupted:
            command = click.get_current_context().info_name
            screen.say(f"To go on later: ./race {command} --resume {shown(folder)}")
            raise


def outcome_code(record: "RepeatedRuns") -> int:
    """Return the exit code: 1 if a piece failed, otherwise 5 if a piece is void, otherwise 0."""
    from racetrack.analysis.outcome import exit_code

    codes = {exit_code(piece.outcome) for piece in record.pieces}
    return 1 if 1 in codes else max(codes, default=1)
