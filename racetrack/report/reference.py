"""A table of results from elsewhere, such as the experiment of 2022, with the results of a machine
beside it."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError
from rich.markup import escape
from rich.table import Table as RichTable

from racetrack.analysis.table import HARNESS_VERSIONS, Row, Table
from racetrack.errors import UsageError
from racetrack.metrics import ACHIEVED, CPU_MEAN, METRICS, RSS_MAX, TOP_CPU
from racetrack.plan.model import PLANS
from racetrack.results.folder import read_run
from racetrack.terminal import as_text

WIDTH = 110
# Columns of the reference, and the figures here. CPU was measured with top then.
COLUMNS = {CPU_MEAN.key: TOP_CPU.key, RSS_MAX.key: RSS_MAX.key}


class ReferenceResult(BaseModel):
    """An entry in the table: mean CPU in percent of a core, and largest memory in GiB."""

    engine: str
    events_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    note: str = ""


class Reference(BaseModel):
    """A table of results, with the machine on which they were measured."""

    title: str
    machine: str
    notes: tuple[str, ...]
    results: tuple[ReferenceResult, ...]


def read_reference(name: str) -> Reference:
    """Read the reference of a plan: a file in the folder of the plans, or with a path of its own.

    Raises:
        UsageError: it can't be read.
    """
    file = PLANS / Path(name).expanduser()
    try:
        return Reference.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise UsageError(f"The reference {file} can't be read: {error}") from error


def beside_reference(article: Reference, table: Table) -> list[str]:
    """Return the reference's table next to the rows of a table, with machines and versions."""
    return [*_table(article, table), "", *_footer(article, table)]


def _table(article: Reference, table: Table) -> list[str]:
    own = {
        (row.engine, row.load.per_s): row
        for row in sorted(table.rows, key=lambda row: row.outcome == "ok")  # the last one counts
        if row.load
    }
    grid = RichTable(
        ACHIEVED.unit, "engine", title=f"{article.title}, and here", title_justify="left"
    )
    for whose in ("2022", "here"):
        grid.add_column(f"CPU {whose}, %", justify="right")
        grid.add_column(f"memory {whose}, GiB", justify="right")
    grid.add_column("2022")
    grid.add_column("here")
    for result in sorted(article.results, key=lambda result: result.events_per_s):
        row = own.get((result.engine, result.events_per_s))
        grid.add_row(
            f"{result.events_per_s:,}",
            result.engine,
            *(METRICS[key].number(getattr(result, key)) for key in COLUMNS),
            *_measured_here(row),
            result.note,
            escape(_verdict_here(row)),
        )
    return as_text(grid, WIDTH).splitlines()


def _measured_here(row: Row | None) -> Iterator[str]:
    """Yield the figures of a row as text, empty if the engine was not offered the rate."""
    for key in COLUMNS.values():
        counts = row is not None and row.outcome == "ok" and row.is_offered
        yield METRICS[key].number(row.values.get(key)) if row and counts else ""


def _verdict_here(row: Row | None) -> str:
    if row is None:
        return "not run"
    if not row.is_offered:
        achieved = row.values.get(ACHIEVED.key)
        what = "" if achieved is None else f": {achieved:,.0f}/s were all"
        return f"not offered here{what}"
    return row.verdict if row.outcome == "ok" else row.outcome


def _footer(article: Reference, table: Table) -> Iterator[str]:
    yield f"2022: {article.machine}."
    for place in table.places:
        yield f"here: {place}."
    versions = {
        f"{name} {version}"
        for folder in table.folders
        for name, version in read_run(folder).versions.items()
        if name not in HARNESS_VERSIONS
    }
    if versions:
        yield f"versions here: {', '.join(sorted(versions))}."
    yield from article.notes
    yield "The results are from different machines, so don't compute ratios between the columns."
