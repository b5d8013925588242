"""`./race plan`, and the options with which commands choose a plan."""

import functools
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from racetrack import plugins
from racetrack.cli.parameters import (
    QUERIES_OPTION,
    WORKLOAD_OPTION,
    Command,
    complete_engines,
    errors_to_exit_codes,
    load_settings,
)

if TYPE_CHECKING:
    from racetrack.analysis.table import Row
    from racetrack.plan.model import Plan
    from racetrack.plan.resolve import Options, ResolvedPlan

# A Job gets the text of a plan's file in this variable, since it can't read files of this machine.
PLAN_OF_JOB = "RACETRACK_PLAN_OF_JOB"
SPEED_SAMPLES = 301  # of 0.1 ms; the first ones run on a core that was idle
# With pauses, as in a run: without them, caches make reads a third shorter.
READ_SAMPLES, READ_EVERY_S = 15, 0.03


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that take precedence over a plan to a command, which receives them as the
    argument `options`."""

    @click.option(
        "--load",
        "loads",
        multiple=True,
        metavar="LOAD",
        help="Loads instead of those in the plan: rates such as 5k or 2k,10k, a share of the"
        " capacity such as 80%, or a profile such as 'spike 5k 50k 10s'. The option may be given"
        " several times.",
    )
    @click.option(
        "--repeats",
        type=click.IntRange(min=1),
        help="Runs of each variant, instead of the number in the plan.",
    )
    @click.option(
        "--no-reads",
        is_flag=True,
        help="Don't read the views, and add no tracer events, whose rows are read, too. An engine"
        " that computes views only when they are read then has no work.",
    )
    @WORKLOAD_OPTION
    @QUERIES_OPTION
    @click.option(
        "--seed",
        type=int,
        help="Seed of the random order. By default a random one, which is printed.",
    )
    @functools.wraps(command)
    def with_options(
        *args: Any,
        loads: tuple[str, ...],
        repeats: int | None,
        no_reads: bool,
        workload: str | None,
        queries: str | None,
        seed: int | None,
        **given: Any,
    ) -> Any:
        from racetrack.plan.resolve import Options

        split = [part.strip() for text in loads for part in _loads_in(text)]
        options = Options((), tuple(split), repeats, seed, workload, not no_reads, queries)
        return command(*args, options=options, **given)

    return with_options


def _loads_in(text: str) -> list[str]:
    """Return the loads in an option: one profile, which begins with its name, or several others."""
    return [text] if text[:1].isalpha() else text.split(",")


def complete_plans(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the plans in `plans/`, and files otherwise."""
    names = sorted(file.stem for file in (plugins.REPO / "plans").glob("*.toml"))
    matching = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return matching or [CompletionItem(incomplete, type="file")]


@click.command(cls=Command)
@click.argument("name", metavar="PLAN", shell_complete=complete_plans)
@click.argument("engines", metavar="[ENGINE]...", nargs=-1, shell_complete=complete_engines)
@plan_options
def plan(name: str, engines: tuple[str, ...], options: "Options") -> None:
    """Print what a plan measures and how long that takes, and whether it can run here. Nothing is
    started.

    PLAN is the name of a file in plans/, or a file. ENGINEs are the variants of a plan that has
    none of its own; otherwise only those are measured.

    \b
    Examples:
        ./race plan quick dh kstreams
        ./race plan vary 'dh[DEEPHAVEN_HEAP=2g|4g]' --load 5k,50k
        ./race plan as-published dh
    """
    from racetrack.plan.describe import describe
    from racetrack.run.runner import require_possible, with_runtime

    with errors_to_exit_codes():
        load_settings()
        planned = resolved(name, replace(options, variants=engines))
        for line in (*describe(planned), *slow_hour()):
            click.echo(line)
        require_possible(with_runtime(planned, click.echo))


def slow_hour() -> list[str]:
    """Return a warning if this machine is much slower than in its published results."""
    from racetrack import host
    from racetrack.probes.noise import Memory, core_mib_per_s
    from racetrack.report.result_check import slower_than_published

    mib_per_s = statistics.median(core_mib_per_s() for _ in range(SPEED_SAMPLES))
    memory, reads_ns = Memory(), list[float]()
    for _ in range(READ_SAMPLES):
        time.sleep(READ_EVERY_S)
        reads_ns.append(memory.read_ns())
    read_ns = statistics.median(reads_ns)
    why = slower_than_published(plugins.REPO / "results", host.describe(), mib_per_s, read_ns)
    return [f"  Warning: {why}"] if why else []


def resolved(name: str, options: "Options") -> "ResolvedPlan":
    """Resolve the plan with this name or in this file.

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


def line_of(row: "Row") -> str:
    """Return a line on a window that was just measured."""
    from racetrack.metrics import (
        CAPACITY,
        CPU_PER_MILLION,
        LAG_P50,
        LAG_P99,
        NORMAL_AFTER,
        UP_AFTER,
        VIEW_LAG_P50,
        VIEW_LAG_P99,
    )

    if row.outcome != "ok":
        return f"{row.window}: {row.outcome}"
    lag = (LAG_P50, LAG_P99)
    if VIEW_LAG_P99.key in row.values:  # which ranks
        lag = (VIEW_LAG_P50, VIEW_LAG_P99)
    values = [
        f"{metric.title} {'at least ' if metric.key in row.at_least else ''}"
        f"{metric.text(row.values[metric.key])}"
        for metric in (CAPACITY, *lag, CPU_PER_MILLION, UP_AFTER, NORMAL_AFTER)
        if metric.key in row.values
    ]
    verdict = row.verdict if row.verdict != "none" else ""
    return f"{row.window}: {'; '.join(filter(None, [', '.join(values), verdict, row.remark]))}"
