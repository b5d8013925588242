"""`./race limit`: searches for the capacity and the highest sustained rates of engines."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack.cli.compare import MakeRuns, carry_out, outcome_code, show
from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import (
    POSITIVE_S,
    QUERIES_OPTION,
    WORKLOAD_OPTION,
    Duration,
    Rate,
    complete_engines,
    guarded,
    load_settings,
    refuse_others,
    resume_option,
)

if TYPE_CHECKING:
    from racetrack.analysis.table import Row
    from racetrack.plan.model import Phase

PLAN = "limit"


@click.command(cls=MeasuringCommand)
@click.argument("names", metavar="ENGINE...", nargs=-1, shell_complete=complete_engines)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of searches of each engine; engines alternate. At the end the command"
    " compares them.",
)
@click.option(
    "--start",
    type=Rate(1),
    help="Rate to begin with, by default 1000 events per second. An engine that takes long to"
    " warm up may need less.",
)
@click.option(
    "--warm-up",
    type=Duration(POSITIVE_S),
    help="Longest time to wait until CPU time per event is flat, while Java compiles its code; by"
    " default 120s.",
)
@click.option(
    "--bound",
    "bounds",
    type=Duration(POSITIVE_S),
    multiple=True,
    help="Bound of the view lag, such as 2s or 500ms. The option may be given several times."
    " Without it there are two bounds, 1 s and 5 s.",
)
@click.option(
    "--within",
    type=Duration(60),
    help="Time limit for one search, such as 25m; by default 15m. No trial is begun that would end"
    " later.",
)
@WORKLOAD_OPTION
@QUERIES_OPTION
@resume_option("runs of searches that were interrupted")
@output_options
@gate_options
def limit(
    names: tuple[str, ...],
    repeats: int,
    start: int | None,
    warm_up: float | None,
    bounds: tuple[float, ...],
    within: float | None,
    workload: str | None,
    queries: str | None,
    resume: Path | None,
    output: Output,
    gate: Gate,
    make_runs: MakeRuns | None = None,
) -> None:
    """Find the capacity of each ENGINE, and the highest rate at which its view lag stays within a
    bound.

    Capacity is the throughput at saturation. It is measured in two fresh runs, which offer so much
    that the backlog stays at 5 to 30 s of work. When the backlog has been worked off, the search
    tries 0.95 of the capacity, 0.90, and so on, for 90 s each, until the 99th percentile of the
    view lag stays within each bound. The exit code is 1 if there was no time to find each of these
    rates to 0.05 of the capacity. This is the plan `limit` (docs/plans.md).

    \b
    Examples:
        ./race limit dh
        ./race limit dh flink --repeats 3
        ./race limit flink --within 25m
        ./race limit dh --bound 500ms --bound 2s
        ./race limit --resume logs/2026.11.26.05.10.00_UTC_limit
        ./race limit dh --against results/shop/m/dh@42.7.json --fail-if 'capacity_per_s<-10%'
    """
    if resume:
        refuse_others("resume", "--resume continues a search as it began.")
    if not (names or resume):
        raise click.UsageError("Name engines, or a search to --resume.")
    from racetrack.analysis import table
    from racetrack.cli.plans import read_named
    from racetrack.plan.resolve import Options, resolve
    from racetrack.results.run import SEARCH

    screen, planned = output.screen(), None
    with guarded(screen) as guard:
        if not resume:
            plan = read_named(PLAN)
            changed = [_with(phase, start, warm_up, bounds, within) for phase in plan.phases]
            options = Options(names, (), repeats, None, workload, queries=queries)
            planned = resolve(plan.model_copy(update={"phases": tuple(changed)}), PLAN, options)
        load_settings()
        folder, record = (make_runs or carry_out)(planned, resume, output, gate, guard, wanted=PLAN)
        failed = show(folder, record, output, gate)
        rows = table.read([folder]).rows
        for line in _results(rows):
            screen.heading(line)
    is_open = any(row.at_least for row in rows if row.window == SEARCH)
    sys.exit(failed or outcome_code(record) or int(is_open))


def _results(rows: "Sequence[Row]") -> Iterator[str]:
    """Yield lines with the result of each search: the capacity with an interval from its batches,
    and the rates."""
    from racetrack.analysis import capacity
    from racetrack.results.run import SATURATION, SEARCH

    for row in rows:
        if row.window != SEARCH:
            continue
        folders = [
            other.folder
            for other in rows
            if (other.variant, other.repeat, other.window) == (row.variant, row.repeat, SATURATION)
            and other.outcome == "ok"
            and other.folder
        ]
        if pooled := capacity.of_folders(folders):
            interval = f"{pooled.low:,.0f} to {pooled.high:,.0f}"
            yield f"{row.variant}: capacity {pooled.per_s:,.0f}/s ({interval})"
        yield f"{row.variant}: {row.remark}"


def _with(
    phase: "Phase",
    start: int | None,
    warm_up_s: float | None,
    bounds_s: tuple[float, ...],
    within_s: float | None,
) -> "Phase":
    """Return a phase with the durations, rates and bounds that the options give."""
    from racetrack.plan.model import Search, WarmUp

    of_warm_up = {"start": start, "for_s": warm_up_s}
    of_search = {"bounds_s": tuple(sorted(set(bounds_s))) or None, "within_s": within_s}
    values = of_warm_up if isinstance(phase, WarmUp) else of_search
    if not isinstance(phase, WarmUp | Search):
        return phase
    return phase.model_copy(update={key: value for key, value in values.items() if value})
