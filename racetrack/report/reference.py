"""The table of the experiment of 2022, with the results of a machine beside it."""

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table as RichTable

from racetrack.analysis.table import HARNESS_VERSIONS, Row, Table
from racetrack.metrics import ACHIEVED, CPU_MEAN, METRICS, RSS_MAX, TOP_CPU
from racetrack.results.folder import read_run
from racetrack.results.sweep import Article
from racetrack.terminal import as_text

WIDTH = 110
# Columns of the reference, and the figures here. CPU was measured with top then.
COLUMNS = {CPU_MEAN.key: TOP_CPU.key, RSS_MAX.key: RSS_MAX.key}


def beside_reference(article: Article, table: Table) -> list[str]:
    """Return the reference's table next to the rows of a table, with machines and versions."""
    return [*_table(article, table), "", *_footer(article, table)]


def _table(article: Article, table: Table) -> list[str]:
    own = {(row.engine, row.load.per_s): row for row in table.rows if row.load}
    grid = RichTable(
        ACHIEVED.unit, "engine", title=f"{article.title}, and here", title_justify="left"
    )
    for whose in ("2022", "here"):
        grid.add_column(f"CPU {whose}, %", justify="right")
        grid.add_column(f"memory {whose}, GiB", justify="right")
    grid.add_column("2022")
    grid.add_column("here")
    for result in sorted(article.results, key=lambda result: result.pageviews_per_s):
        row = own.get((result.engine, result.pageviews_per_s))
        grid.add_row(
            f"{result.pageviews_per_s:,}",
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


def _footer(article: Article, table: Table) -> Iterator[str]:
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
