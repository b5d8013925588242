"""The page docs/results.md, and what writes all pages of results.

Pages are generated from the files in `results/`. They do not contain the time of their generation,
so the same results give the same pages.
"""

from collections.abc import Iterator, Mapping, Sequence
from os.path import relpath
from pathlib import Path

from racetrack import metrics
from racetrack.analysis.table import Load
from racetrack.metrics import Metric
from racetrack.report.choosing import choosing_page
from racetrack.report.ranking import ranking_page
from racetrack.report.render import markdown_table
from racetrack.report.sheet import format_estimate
from racetrack.report.standings import (
    BELOW_SEARCH,
    Standing,
    answers_of,
    caveats_of,
    columns_of,
    families,
    few_names,
    name_of,
    names_of,
    read_results,
    standings,
)
from racetrack.results.json_file import write_whole

INTRODUCTION = """# Results

<!-- Generated from results/ by `./race publish`. Do not edit. -->

What engines reached, and what it cost. [index.html](index.html) draws these figures;
[results/](../results/README.md) has them as data, with versions, settings and noise.

- **Compare figures within a section only, and within a row of queries**: each has its own workload
  and machine. Of two cores, the engine had one; broker, generator and database had the other.
- A figure is a geometric mean over [warmed-up runs on fresh stacks](compare.md#how-it-measures),
  with its 95 % [interval](compare.md#when-engines-differ), which may rest on the scatter of other
  engines' runs; without one it comes from a single run. “~” marks an interval beyond ± 15 %, “not
  resolved” one that is too wide to print, and “≥” what something other than the engine limited.
  “Not held”: the engine fell behind, its lag p99 was above 5 s, or less input arrived.
- [View lag](views.md) is the age of the oldest event that is due but not yet in a view that a
  client follows; [the way to it](measured.md#observation-paths) adds some. Capacity, or saturation
  throughput, is what an engine processes while input always waits.
- Costs are the engine's; the broker's for it has a column of its own. They include sending the
  [followed views](views.md) (on the shop two of 17) to a client if the engine serves them; an
  engine that publishes writes all views. The client's reading is not included. Base CPU is
  extrapolated to rate 0, with reads and tracer events going on.
- [choosing.md](choosing.md) says which differences are claimed. Engines of different
  [classes](engines.md#classes) do different work; those that compute a view when it is read are not
  ranked.
- Answers are the views, compared row by row with their sources.
"""


def write(root: Path, folder: Path, engines: Mapping[str, str]) -> list[Path]:
    """Write the pages index.html, results.md and choosing.md into `folder` from all results below
    `root`. Return their paths. `engines` are the titles of all engines by their names.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    pages = _pages(root, folder, engines)
    folder.mkdir(parents=True, exist_ok=True)
    for page, text in pages.items():
        write_whole(page, text)
    return list(pages)


def outdated(root: Path, folder: Path, engines: Mapping[str, str]) -> list[Path]:
    """Return the pages in `folder` that are missing, or not those of the results below `root`.

    Raises:
        UsageError: as in `write`.
    """
    pages = _pages(root, folder, engines).items()
    return [
        page
        for page, text in pages
        if not page.exists() or page.read_text().rstrip() != text.rstrip()
    ]


def _pages(root: Path, folder: Path, engines: Mapping[str, str]) -> dict[Path, str]:
    places = standings(read_results(root))
    return {
        folder / "index.html": ranking_page(places),
        folder / "results.md": results_page(places, relpath(root, folder)),
        folder / "choosing.md": choosing_page(places, relpath(root, folder), engines),
    }


def results_page(places: Sequence[Standing], root: str) -> str:
    """Return docs/results.md, with a section for each workload and machine. `root` is the path of
    `results/` relative to the page."""
    sections = (_section(family, root) for family in families(places))
    return (INTRODUCTION + "".join(sections)).rstrip()


def _section(family: Sequence[Standing], root: str) -> str:
    """Return a section: of one standing, or of all queries of a workload."""
    results = [result for standing in family for result in standing.results]
    days = {day for result in results for day in (result.measured_from, result.measured_until)}
    when = " to ".join(dict.fromkeys((min(days), max(days))))
    caveats = "".join(f"- {line}\n" for line in caveats_of(results))
    commands = dict.fromkeys(command for result in results for command in result.commands)
    repeat = "To repeat this:"
    if family[0].queries:
        commands = dict.fromkeys(command for command in commands if " compare " in command)
        repeat = "To repeat this; each result also has the command that verified its answers:"
    parts = [
        f"\n## {family[0].heading}\n\nMeasured {when}.\n",
        *(_by_query(family, root) if family[0].queries else _one(family[0], root)),
        f"\n{caveats}" if caveats else "",
        f"\n{repeat}\n\n" + "".join(f"    {command}\n" for command in commands),
    ]
    return "".join(parts)


def _one(standing: Standing, root: str) -> Iterator[str]:
    yield f"\n{_matrix(standing, root)}"
    for metric in (metrics.VIEW_LAG_P99, metrics.CPU_PER_MILLION):
        yield _by_load(standing, metric)


def _by_query(family: Sequence[Standing], root: str) -> Iterator[str]:
    """Yield a table for each figure: a row for each query, and a column for each engine; then one
    of the answers, with links to the results."""
    names = names_of(family)
    for column in columns_of(family):
        rows = [
            (
                standing.queries,
                *(_figure(standing, name, column.metric, column.load) for name in names),
            )
            for standing in family
        ]
        yield f"\n{_capital(column.heading)}:\n\n{markdown_table(('query', *names), rows)}"
    rows = []
    for standing in family:
        links = {
            name_of(result): f"[{answers_of(result)}]({root}/{result.file_name})"
            for result in standing.results
        }
        rows.append((standing.queries, *(links.get(name, "") for name in names)))
    yield f"\nAnswers:\n\n{markdown_table(('query', *names), rows)}"


def _matrix(standing: Standing, root: str) -> str:
    """Return the matrix as a table: a row for each engine, and a column for each figure."""
    headings = (
        "engine",
        "version",
        *(column.heading for column in standing.columns),
        "answers",
        "class",
    )
    rows = []
    for result in sorted(
        standing.results, key=lambda result: name_of(result) not in standing.samples.ranked
    ):
        name = name_of(result)
        unranked = "" if name in standing.samples.ranked else " (not ranked)"
        figures = (
            _figure(standing, name, column.metric, column.load) for column in standing.columns
        )
        row = (
            f"[{name}]({root}/{result.file_name}){unranked}",
            result.version,
            *figures,
            answers_of(result),
            standing.class_of(result),
        )
        rows.append(row)
    return markdown_table(headings, rows)


def _by_load(standing: Standing, metric: Metric) -> str:
    """Return a table of a figure: a row for each load, and a column for each engine."""
    loads = standing.loads_of(metric)
    if not loads:
        return ""
    rows = [
        (
            f"{load}{_why_unranked(standing, load)}",
            *(_figure(standing, name, metric, load) for name in standing.names),
        )
        for load in loads
    ]
    title = f"{_capital(metric.title)}, {metric.unit}"
    return f"\n{title}:\n\n{markdown_table(('load', *standing.names), rows)}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _why_unranked(standing: Standing, load: Load) -> str:
    """Return why nothing is ranked at a load, in brackets; empty if something is."""
    idle = standing.samples.idle_at(load)
    return f" (not ranked: below a tenth of the capacity of {few_names(idle)})" if idle else ""


def _figure(standing: Standing, name: str, metric: Metric, load: Load | None) -> str:
    if standing.is_below_search(name, metric):
        return BELOW_SEARCH
    text = format_estimate(metric, standing.estimate(name, metric, load))
    if not text:
        return ""
    facts = (text, standing.missed(name, load), standing.other_order(name, metric, load))
    return "; ".join(filter(None, facts))
