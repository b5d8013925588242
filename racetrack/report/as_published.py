"""The published experiment run again: its table, with what was measured here beside it."""

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from racetrack.analysis.outcome import rate_missed
from racetrack.report.collect import RULER, Run
from racetrack.report.definitions import number
from racetrack.results.figures import VerdictKind
from racetrack.results.reference import Article
from racetrack.terminal import as_text

WIDTH = 110
FIGURES = ("cpu_mean_pct", "rss_max_gib")
# What the article measured with top is held against top here.
MEASURED = {"cpu_mean_pct": "top_cpu_mean_pct"}
NOT_OFFERED = "not offered here"


def lines(article: Article, runs: Sequence[Run]) -> list[str]:
    """The table, and on what machines and with what versions it was made."""
    return [*_table(article, runs), "", *_footer(article, runs)]


def _table(article: Article, runs: Sequence[Run]) -> list[str]:
    own = {(run.engine, run.rate): run for run in runs}
    table = Table("pageviews/s", "engine", title=f"{article.title}, and here", title_justify="left")
    for whose in ("2022", "here"):
        table.add_column(f"CPU {whose}, %", justify="right")
        table.add_column(f"memory {whose}, GiB", justify="right")
    table.add_column("2022")
    table.add_column("here")
    for result in sorted(article.results, key=lambda result: result.pageviews_per_s):
        run = own.get((result.engine, result.pageviews_per_s))
        table.add_row(
            f"{result.pageviews_per_s:,}",
            result.engine,
            *(number(key, getattr(result, key)) for key in FIGURES),
            *_figures(run),
            result.note,
            escape(_here(run)),
        )
    return as_text(table, WIDTH).splitlines()


def _figures(run: Run | None) -> Iterator[str]:
    """What was measured here at the rate; nothing where the rate was not offered."""
    for key in FIGURES:
        measured = run is not None and run.counts and _was_offered(run)
        yield number(key, run.figures[MEASURED.get(key, key)]) if run and measured else ""


def _here(run: Run | None) -> str:
    if run is None:
        return "not run"
    if not _was_offered(run):
        achieved = run.figures["achieved_pageviews_per_s"]
        what = "" if achieved is None else f": {achieved:,.0f}/s were all"
        return f"{NOT_OFFERED}{what}"
    return run.verdict if run.counts else run.outcome


def _was_offered(run: Run) -> bool:
    """Whether generator and broker gave the engine what the article's did."""
    results = run.record.results
    asked = run.record.asked
    missed = bool(asked and results and rate_missed(asked, results))
    held_up = (VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND)
    judged = results.verdict.kind if results else None
    return not missed and judged not in held_up


def _footer(article: Article, runs: Sequence[Run]) -> Iterator[str]:
    yield f"2022: {article.machine}."
    for machine in dict.fromkeys(": ".join(run.place) for run in runs):
        yield f"here: {machine}."
    versions = {
        f"{name} {version}"
        for run in runs
        for name, version in run.record.versions.items()
        if name not in RULER
    }
    if versions:
        yield f"versions here: {', '.join(sorted(versions))}."
    yield from article.notes
    yield "Two machines: read the columns beside each other, and make no ratios of them."
