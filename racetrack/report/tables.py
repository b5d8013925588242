"""A report on the terminal: one table per runtime and machine, then ratios, limits, failures."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from racetrack.analysis.compare import CONFIDENCE, Mean
from racetrack.report import agreement, as_published
from racetrack.report.collect import Collection, Limit
from racetrack.report.definitions import BY_KEY, SHOWN, number, significant
from racetrack.report.groups import Comparison, Table
from racetrack.report.limits import bounds_of, describe_capacity, describe_sustained
from racetrack.results.reference import Published

STYLES = {"kept up": "green", "fell behind": "red"}
# Where nobody looks (a pipe, a file) nothing is folded.
PLAIN_WIDTH = 160


def console() -> Console:
    """Colours on a terminal; plain and wide elsewhere."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def show(
    out: Console,
    collection: Collection,
    tables: Sequence[Table],
    published: Published | None,
) -> None:
    """Print everything; text from run folders is never taken for markup."""
    for table in tables:
        out.print(Text(f"\n{table.runtime}: {table.machine}", style="bold"))
        if table.groups:
            out.print(_figures(table))
            out.print(Text(how(table), style="dim"))
        _lines(out, cost_lines(table))
        if table.comparisons:
            out.print(_ratios(table.comparisons))
        long = {of: told for of, told in table.differences.items() if told not in of}
        _lines(out, [f"{label}: {told}" for label, told in long.items()])
        _lines(out, [f"warning: {warning}" for warning in table.warnings], "yellow")
        told = [f"warning: {what} {whose}".rstrip() for what, whose in warnings_of_runs(table)]
        _lines(out, told, "yellow")
        _failed(out, table)
    _limits(out, collection.limits_by_place)
    _lines(out, [f"not in this report: {name}" for name in collection.missing], "yellow")
    _lines(out, [f"left out: {reason}" for reason in collection.left_out], "yellow")
    if published:
        _published(out, published)
        _lines(out, ["", *as_published.lines(published.article, collection.runs)])


def spread(key: str, of: Mean | None) -> str:
    """`41.0 ± 2.3`, without `±` for a single run."""
    if of is None:
        return "n/a"
    half = "" if of.half is None else f" ± {number(key, of.half)}"
    return number(key, of.mean) + half


def cost_lines(table: Table) -> list[str]:
    """Base and marginal CPU of each engine, as a sentence each: no run was made at 0/s."""
    return [
        f"CPU of {label}: {cost.base_pct:,.1f} ± {cost.base_half_pct:,.1f} % of a core where its"
        f" line begins, at 0/s, and {significant(cost.per_million_s)} ±"
        f" {significant(cost.per_million_half_s, 2)} CPU-s for each million pageviews more"
        f" ({cost.runs} runs that did not fall behind, {cost.from_per_s:,.0f} to"
        f" {cost.to_per_s:,.0f}/s; {CONFIDENCE:.0%} intervals)"
        for label, cost in table.costs.items()
    ]


def ratio_words(comparison: Comparison) -> tuple[str, str, str]:
    """Ratio, interval and conclusion of a comparison, as they are written."""
    found = comparison.ratio
    if found is None:
        return "", "", f"not compared ({comparison.why_not})"
    interval = "" if found.low is None else f"{found.low:.2f} to {found.high:.2f}"
    return f"{found.ratio:.2f}", interval, found.conclusion


def how(table: Table) -> str:
    """What the means and their intervals are."""
    if all(len(group.runs) == 1 for group in table.groups):
        return "Single runs: no interval. Repeat each to get one."
    return f"Means over runs ± half the {CONFIDENCE:.0%} interval (Student's t)."


def warnings_of_runs(table: Table) -> list[tuple[str, str]]:
    """Each warning once, with the runs that it is about; nobody is named where it is all."""
    about: dict[str, list[str]] = {}
    for run in (run for group in table.groups for run in group.runs):
        for warning in run.warnings:
            about.setdefault(warning, []).append(run.tag)
    total = sum(len(group.runs) for group in table.groups)
    return [
        (warning, "" if len(tags) == total else _whose(tags)) for warning, tags in about.items()
    ]


def _whose(tags: Sequence[str]) -> str:
    return f"({tags[0]})" if len(tags) == 1 else f"({len(tags)} runs, e.g. {tags[0]})"


def _figures(table: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    grid.add_column("pageviews/s", justify="right")
    grid.add_column("engine")
    grid.add_column("runs", justify="right")
    for key in SHOWN:
        grid.add_column(f"{BY_KEY[key].title}\n{BY_KEY[key].unit}", justify="right")
    grid.add_column("verdict")
    for group in table.groups:
        grid.add_row(
            f"{group.rate:,}",
            Text(group.label),
            str(len(group.runs)),
            *(spread(key, group.means[key]) for key in SHOWN),
            Text(group.verdict, style=STYLES.get(group.verdict, "yellow")),
        )
    return grid


def _ratios(comparisons: Sequence[Comparison]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    grid.add_column("pageviews/s", justify="right")
    grid.add_column("figure")
    grid.add_column("of / to")
    grid.add_column("ratio", justify="right")
    grid.add_column(f"{CONFIDENCE:.0%} interval", justify="right")
    grid.add_column("")
    for one in comparisons:
        title = BY_KEY[one.key].title
        pair = Text(f"{one.of} / {one.to}")
        ratio, interval, says = ratio_words(one)
        grid.add_row(f"{one.rate:,}", title, pair, ratio, interval, Text(says))
    return grid


def _failed(out: Console, table: Table) -> None:
    if table.failed:
        out.print(Text("Runs that did not end ok; no mean holds their figures:", style="bold"))
        _lines(out, [f"  {run.tag}: {run.why_not.splitlines()[0]}" for run in table.failed])


def _limits(out: Console, by_place: Mapping[str, Sequence[Limit]]) -> None:
    for place, limits in by_place.items():
        out.print(Text(f"\nLimits: {place}", style="bold"))
        grid = Grid(box=None, pad_edge=False, header_style="dim")
        grid.add_column("engine")
        grid.add_column(f"capacity, {limits[0].record.of}/s\n(95 % interval)", justify="right")
        bounds_ms = bounds_of(limits)
        for bound_ms in bounds_ms:
            grid.add_column(f"sustained within\n{bound_ms / 1000:g} s", justify="right")
        grid.add_column("outcome")
        for limit in (each.record for each in limits):
            grid.add_row(
                Text(limit.engine),
                describe_capacity(limit.capacity),
                *(describe_sustained(limit, bound_ms) for bound_ms in bounds_ms),
                Text(limit.outcome.splitlines()[0]),
            )
        out.print(grid)
        _lines(out, agreement.describe(each.record for each in limits))


def _published(out: Console, published: Published) -> None:
    out.print(Text(f"\n{published.title}: {published.machine}", style="bold"))
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for title in ("pageviews/s", "engine", "CPU mean\n% of a core", "memory max\nGiB"):
        grid.add_column(title, justify="left" if title == "engine" else "right")
    for one in published.results:
        grid.add_row(
            f"{one.pageviews_per_s:,}",
            one.engine,
            number("cpu_mean_pct", one.cpu_mean_pct),
            number("rss_max_gib", one.rss_max_gib),
        )
    out.print(grid)
    _lines(out, [*published.notes, f"From {published.where}"])


def _lines(out: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        out.print(Text(line, style=style), soft_wrap=True)
