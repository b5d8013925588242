"""The report for the terminal: a table for each runtime and machine, ratios, capacity searches, and
failed runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from racetrack.analysis.capacity import scale_of
from racetrack.analysis.intervals import CONFIDENCE, Summary
from racetrack.analysis.outcome import rate_missed
from racetrack.report import scaling, searches
from racetrack.report.collect import (
    HARNESS_VERSIONS,
    Collection,
    Comparison,
    Group,
    Limit,
    Run,
    Table,
)
from racetrack.report.figures import BY_KEY, SHOWN, Grade, format_significant, number
from racetrack.report.searches import bounds_of, describe_capacity, describe_sustained
from racetrack.results.figures import BOUND_BY_OTHERS, VerdictKind
from racetrack.results.repeats import ScaleRecord
from racetrack.results.sweep import Article
from racetrack.terminal import as_text

STYLES = {"kept up": "green", "fell behind": "red"}
LEFT = ("engine", "verdict", "figure", "of / to", "", "outcome")  # columns aligned left
# Width of the output in a pipe or a file.
PLAIN_WIDTH = 160
ARTICLE_WIDTH = 110
ARTICLE_FIGURES = ("cpu_mean_pct", "rss_max_gib")
# The article measured CPU with top, so it is compared with top's figure.
TOP_COLUMNS = {"cpu_mean_pct": "top_cpu_mean_pct"}
NOT_OFFERED = "not offered here"


def console(file: TextIO | None = None) -> Console:
    """Return a console that writes to `file`, by default to standard output. The output has colours
    on a terminal, and is plain and wide otherwise."""
    plain = Console(file=file, highlight=False)
    return plain if plain.is_terminal else Console(file=file, highlight=False, width=PLAIN_WIDTH)


def show(out: Console, collection: Collection, tables: Sequence[Table]) -> None:
    """Print the whole report. Text from run folders is not interpreted as markup."""
    for table in tables:
        out.print(Text(f"\n{table.runtime}: {table.machine}", style="bold"))
        if table.groups:
            out.print(_figures(table))
            out.print(Text(describe_means(table), style="dim"))
        _lines(out, describe_costs(table))
        if table.comparisons:
            out.print(_ratios(table.comparisons))
        long = {of: text for of, text in table.differences.items() if text not in of}
        _lines(out, [f"{label}: {text}" for label, text in long.items()])
        _lines(out, [f"warning: {warning}" for warning in table.warnings], "yellow")
        for warnings in graded_warnings(table).values():
            lines = [f"warning: {text} {runs}".rstrip() for text, runs in warnings]
            _lines(out, lines, "yellow")
        _failed(out, table)
    _limits(out, collection.limits_by_place)
    for scale in collection.scales:
        _scale(out, scale.record)
    _lines(out, [f"not in this report: {name}" for name in collection.missing], "yellow")
    _lines(out, [f"left out: {reason}" for reason in collection.left_out], "yellow")


def format_mean(key: str, of: Summary | None) -> str:
    """Format a mean with the half-width of its interval, such as `41.0 ± 2.3`, or without `±` for a
    single run."""
    if of is None:
        return "n/a"
    half = "" if of.half is None else f" ± {number(key, of.half)}"
    return number(key, of.mean) + half


def describe_costs(table: Table) -> list[str]:
    """Describe the base load and the marginal CPU time of each engine."""
    return [
        f"CPU of {label}: {cost.base_pct:,.1f} ± {cost.base_half_pct:,.1f} % of a core at rate 0"
        f" (extrapolated), plus {format_significant(cost.per_million_s)} ±"
        f" {format_significant(cost.per_million_half_s, 2)} CPU-s per million pageviews"
        f" ({cost.runs} runs that did not fall behind, {cost.from_per_s:,.0f} to"
        f" {cost.to_per_s:,.0f}/s; {CONFIDENCE:.0%} intervals)"
        for label, cost in table.costs.items()
    ]


def format_ratio(comparison: Comparison) -> tuple[str, str, str]:
    """Format the ratio, the interval and the conclusion of a comparison."""
    found = comparison.ratio
    if found is None:
        return "", "", f"not compared ({comparison.why_not})"
    interval = "" if found.low is None else f"{found.low:.2f} to {found.high:.2f}"
    return f"{found.ratio:.2f}", interval, found.conclusion


def describe_answer(table: Table) -> list[str]:
    """Return sentences on the highest rate at which all engines were measured: which engines kept
    up, which was the freshest, and which used the least CPU time."""
    shared = [
        rate
        for rate in table.rates
        if {group.label for group in table.groups if group.rate == rate} == set(table.labels)
    ]
    if not shared:
        return []
    groups = [group for group in table.groups if group.rate == shared[-1]]
    kept_up_groups = [group for group in groups if group.verdict == str(VerdictKind.KEPT_UP)]
    others = [group for group in groups if group not in kept_up_groups]
    kept_up = f"{_join(kept_up_groups)} kept up" if kept_up_groups else ""
    did_not = "; ".join(f"{group.label}: {group.verdict}" for group in others)
    first = f"At {shared[-1]:,} pageviews/s {'; '.join(filter(None, (kept_up, did_not)))}."
    rankings = [
        ranking
        for key, what in (("lag_p99_ms", "freshest"), ("cpu_mean_pct", "cheapest"))
        if (ranking := _rank(kept_up_groups, key, what))
    ]
    return [first, *rankings]


def _join(groups: Sequence[Group]) -> str:
    """Join labels as in a sentence: `dh, flink and pg`."""
    *labels, last = [group.label for group in groups]
    return f"{', '.join(labels)} and {last}" if labels else last


def _rank(groups: Sequence[Group], key: str, what: str) -> str:
    """Return a line with the group of the lowest mean and the others after it; empty text if fewer
    than two groups have this figure."""
    known = [(mean, group) for group in groups if (mean := group.means[key]) is not None]
    if len(known) < 2:
        return ""
    ranked = sorted(known, key=lambda pair: pair[0].mean)
    (best, first), (second, _), *_ = ranked
    figures = ", ".join(f"{group.label} {format_mean(key, mean)}" for mean, group in ranked)
    answer = (
        f"{first.label} was the {what}" if best.is_below(second) else f"none was clearly the {what}"
    )
    return f"By {BY_KEY[key].title}, {answer} ({BY_KEY[key].unit}): {figures}."


def describe_means(table: Table) -> str:
    """Explain the means and their intervals."""
    if all(len(group.runs) == 1 for group in table.groups):
        return "Single runs have no interval. Repeat each run to get one."
    return f"Means over runs ± half the {CONFIDENCE:.0%} interval (Student's t)."


def graded_warnings(table: Table) -> dict[Grade, list[tuple[str, str]]]:
    """Return each warning once, by how much it matters, with the names of its runs. The names are
    empty if the warning is about all runs."""
    runs = [run for group in table.groups for run in group.runs]
    found: dict[Grade, list[tuple[str, str]]] = {}
    for grade in Grade:
        about: dict[str, list[str]] = {}
        for run in runs:
            for warning in run.graded[grade]:
                about.setdefault(warning, []).append(run.tag)
        found[grade] = [
            (warning, "" if len(tags) == len(runs) else _name_runs(tags))
            for warning, tags in about.items()
        ]
    return found


def _name_runs(tags: Sequence[str]) -> str:
    return f"({tags[0]})" if len(tags) == 1 else f"({len(tags)} runs, e.g. {tags[0]})"


def _grid(*columns: str) -> Grid:
    """Return an empty table. Columns in LEFT are aligned left, all others right."""
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for title in columns:
        grid.add_column(title, justify="left" if title in LEFT else "right")
    return grid


def _figures(table: Table) -> Grid:
    shown = [f"{BY_KEY[key].title}\n{BY_KEY[key].unit}" for key in SHOWN]
    grid = _grid("pageviews/s", "engine", "runs", *shown, "verdict")
    for group in table.groups:
        grid.add_row(
            f"{group.rate:,}",
            Text(group.label),
            str(len(group.runs)),
            *(format_mean(key, group.means[key]) for key in SHOWN),
            Text(group.verdict, style=STYLES.get(group.verdict, "yellow")),
        )
    return grid


def _ratios(comparisons: Sequence[Comparison]) -> Grid:
    interval_title = f"{CONFIDENCE:.0%} interval"
    grid = _grid("pageviews/s", "figure", "of / to", "ratio", interval_title, "")
    for one in comparisons:
        title = BY_KEY[one.key].title
        pair = Text(f"{one.of} / {one.to}")
        ratio, interval, conclusion = format_ratio(one)
        grid.add_row(f"{one.rate:,}", title, pair, ratio, interval, Text(conclusion))
    return grid


def _failed(out: Console, table: Table) -> None:
    if table.failed:
        out.print(Text("Runs that did not end ok, not included in the means:", style="bold"))
        _lines(out, [f"  {run.tag}: {run.why_not.splitlines()[0]}" for run in table.failed])


def _limits(out: Console, by_place: Mapping[str, Sequence[Limit]]) -> None:
    for place, limits in by_place.items():
        out.print(Text(f"\nLimits: {place}", style="bold"))
        bounds_ms = bounds_of(limits)
        capacity = "capacity, pageviews/s\n(95 % interval)"
        sustained = [f"sustained within\n{bound_ms / 1000:g} s" for bound_ms in bounds_ms]
        grid = _grid("engine", capacity, *sustained, "outcome")
        for limit in (each.record for each in limits):
            grid.add_row(
                Text(limit.engine),
                describe_capacity(limit.capacity),
                *(describe_sustained(limit, bound_ms) for bound_ms in bounds_ms),
                Text(limit.outcome.splitlines()[0]),
            )
        out.print(grid)
        _lines(out, searches.describe_agreement(each.record for each in limits))


def _scale(out: Console, record: ScaleRecord) -> None:
    scale = scale_of(record)
    out.print(Text(f"\nScaling: {scaling.place(record)}", style="bold"))
    _lines(out, scaling.sentences(scale))
    heading, *rows = scaling.table(scale)
    grid = _grid(*heading)
    for row in rows:
        grid.add_row(*map(Text, row))
    out.print(grid)
    _lines(out, scaling.describe_conditions(record))


def _lines(out: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        out.print(Text(line, style=style), soft_wrap=True)


def compare_with_article(article: Article, runs: Sequence[Run]) -> list[str]:
    """Return the article's table next to the results of these runs, with machines and versions."""
    return [*_article_table(article, runs), "", *_article_footer(article, runs)]


def _article_table(article: Article, runs: Sequence[Run]) -> list[str]:
    own = {(run.engine, run.rate): run for run in runs}
    table = Grid("pageviews/s", "engine", title=f"{article.title}, and here", title_justify="left")
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
            *(number(key, getattr(result, key)) for key in ARTICLE_FIGURES),
            *_measured_here(run),
            result.note,
            escape(_verdict_here(run)),
        )
    return as_text(table, ARTICLE_WIDTH).splitlines()


def _measured_here(run: Run | None) -> Iterator[str]:
    """Yield the figures of a run as text, empty if the engine was not offered the rate."""
    for key in ARTICLE_FIGURES:
        measured = run is not None and run.counts and _was_offered(run)
        yield number(key, run.figures[TOP_COLUMNS.get(key, key)]) if run and measured else ""


def _verdict_here(run: Run | None) -> str:
    if run is None:
        return "not run"
    if not _was_offered(run):
        achieved = run.figures["achieved_pageviews_per_s"]
        what = "" if achieved is None else f": {achieved:,.0f}/s were all"
        return f"{NOT_OFFERED}{what}"
    return run.verdict if run.counts else run.outcome


def _was_offered(run: Run) -> bool:
    """Return whether generator and broker delivered the article's rate to the engine."""
    results = run.record.results
    arguments = run.record.arguments
    missed = bool(arguments and results and rate_missed(arguments, results))
    judged = results.verdict.kind if results else None
    return not missed and judged not in BOUND_BY_OTHERS


def _article_footer(article: Article, runs: Sequence[Run]) -> Iterator[str]:
    yield f"2022: {article.machine}."
    for machine in dict.fromkeys(": ".join(run.place) for run in runs):
        yield f"here: {machine}."
    versions = {
        f"{name} {version}"
        for run in runs
        for name, version in run.record.versions.items()
        if name not in HARNESS_VERSIONS
    }
    if versions:
        yield f"versions here: {', '.join(sorted(versions))}."
    yield from article.notes
    yield "The results are from different machines, so don't compute ratios between the columns."
