"""The pages docs/index.html, which ranks engines, and docs/results.md. Both are generated from the
files in `results/`. They do not contain the time of their generation, so the same results give the
same pages.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from os.path import relpath
from pathlib import Path

from racetrack.errors import UsageError
from racetrack.plugins import workload_names
from racetrack.report.export import markdown_table
from racetrack.report.figures import format_interval
from racetrack.report.html import environment, own_file
from racetrack.results.folder import read_record
from racetrack.results.json_file import write_whole
from racetrack.results.published import EngineResult, Estimate, RateFigures, slug_of_place
from racetrack.workloads.contract import find_workload

CHARTS = ("lag", "cpu", "distribution")
INTRODUCTION = """# Results

<!-- Generated from results/ by `./race publish`. Do not edit. -->

What engines reached, and what it cost. [index.html](index.html) draws these figures and ranks the
engines; [results/](../results/README.md) has them as data, with versions, settings and noise.

- **Compare figures within a section only**: each has its own workload and machine.
- Engine, broker, generator and database share the machine's cores.
- A figure is a geometric mean over [warmed-up runs on fresh stacks](compare.md#how-it-measures), in
  brackets its 95 % interval; without one it comes from a single run. The runs are of one session:
  another day may give figures outside the interval.
- [Lag](verdict.md#lag) is the age of the oldest event that is due but not yet counted. CPU and
  memory are the engine's alone, without broker and view reader. Memory counts shared pages once and
  includes files on tmpfs. The base is the CPU use at rate 0, extrapolated.
- Answers are the views, compared row by row with their sources in runs with `--verify`.
"""
AT_RATE: Mapping[str, str] = {
    "lag_p50_ms": "lag p50, ms",
    "lag_p99_ms": "lag p99, ms",
    "view_lag_p99_ms": "view lag p99, ms",
    "read_time_p99_ms": "read time p99, ms",
    "cpu_s_per_million": "CPU-s per million events",
    "memory_max_gib": "memory, GiB",
}
NOT_MEASURED = ""


def write(root: Path, folder: Path) -> list[Path]:
    """Write the pages index.html and results.md into `folder` from all results below `root`. Return
    their paths.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    results = read_results(root)
    pages = {
        folder / "index.html": ranking_page(results),
        folder / "results.md": results_page(results, relpath(root, folder)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for page, text in pages.items():
        write_whole(page, text)
    return list(pages)


def ranking_page(results: Sequence[EngineResult]) -> str:
    """Return the page that ranks these results. It contains all data, so it works offline from
    `file://`."""
    return (
        environment()
        .get_template("ranking.html.j2")
        .render(
            results=[{"path": of.file_name, **json.loads(of.as_text())} for of in results],
            events=_events(results),
            charts=CHARTS,
            licence=own_file("uplot/LICENSE"),
            css=own_file("uplot/uPlot.min.css") + own_file("page.css") + own_file("ranking.css"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            charts_js=own_file("charts.js"),
            ranking_js=own_file("ranking.js"),
        )
    )


def _events(results: Sequence[EngineResult]) -> dict[str, str]:
    """Return what the events of each workload's main topic are called."""
    measured = {of.workload for of in results} & set(workload_names())
    return {name: find_workload(name).topic.event for name in sorted(measured)}


def read_results(root: Path) -> list[EngineResult]:
    """Return all results below `root`, sorted by path.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    found = []
    for file in sorted(root.rglob("*.json")):
        result = read_record(file, EngineResult)
        if file.relative_to(root).as_posix() != result.file_name:
            raise UsageError(
                f"The content of {file} belongs into {result.file_name}: move the file, or publish"
                " the result again."
            )
        found.append(result)
    return found


def results_page(results: Sequence[EngineResult], root: str) -> str:
    """Return docs/results.md, with a section for each workload, machine and runtime. `root` is the
    path of `results/` relative to the page."""
    by_place = sorted(results, key=_place)
    sections = [_section(list(of), root) for _, of in groupby(by_place, key=_place)]
    return (INTRODUCTION + "".join(sections)).rstrip()


def _place(result: EngineResult) -> tuple[str, str]:
    return result.workload, slug_of_place(result.machine, result.runtime)


def _section(results: Sequence[EngineResult], root: str) -> str:
    first = results[0]
    machine = first.machine
    numbers = f" ({machine.cpu_numbers})" if machine.cpu_numbers else ""
    days = {day for of in results for day in (of.measured_from, of.measured_until)}
    when = " to ".join(dict.fromkeys((min(days), max(days))))
    memory = "" if machine.memory_gib is None else f", {machine.memory_gib:.0f} GiB"
    quota = f", {machine.quota}" if machine.quota else ""
    heading = (
        f"{first.workload}: {machine.cpu_model}{numbers}, {machine.cores} cores{quota}{memory}"
    )
    parts = [
        f"\n## {heading}\n\nRuntime {first.runtime}, measured {when}.\n\n",
        _overall(results, root),
        *(_at_rate(rate, results) for rate in _rates(results)),
        _caveats(results),
        _commands(results),
    ]
    return "".join(parts)


def _overall(results: Sequence[EngineResult], root: str) -> str:
    columns = (
        "engine",
        "version",
        "capacity, events/s",
        "base, % of a core",
        "answers",
        "promised after a kill",
    )
    best_first = sorted(results, key=lambda of: -(of.capacity.mean if of.capacity else 0))
    rows = [
        (
            f"[{_name(of)}]({root}/{of.file_name})",
            of.version,
            _capacity(of),
            _estimate(of.cpu_line.base_pct if of.cpu_line else None),
            _answers(of),
            of.guarantee,
        )
        for of in best_first
    ]
    return markdown_table(columns, rows)


def _name(result: EngineResult) -> str:
    return result.title + (f" ({result.variant})" if result.variant else "")


def _capacity(result: EngineResult) -> str:
    if not result.capacity:
        return NOT_MEASURED
    return ("at least " if result.capacity.is_lower_bound else "") + _estimate(result.capacity)


def _answers(result: EngineResult) -> str:
    views = result.views
    if not views.runs:
        return "not checked"
    of = "" if views.of_workload is None else f" of {views.of_workload}"
    wrong = f", wrong: {', '.join(views.wrong)}" if views.wrong else ""
    return f"{len(views.right)}{of} views right{wrong}"


def _estimate(of: Estimate | None) -> str:
    return format_interval(of.mean, of.low, of.high) if of else NOT_MEASURED


def _rates(results: Sequence[EngineResult]) -> list[int]:
    """Return the rates at which at least two engines were measured; all rates if there are none."""
    rates = [figures.per_s for of in results for figures in of.rates]
    shared = {rate for rate in rates if rates.count(rate) > 1}
    return sorted(shared or set(rates))


def _at_rate(rate: int, results: Sequence[EngineResult]) -> str:
    """Return the table of a rate, the freshest engine first. Figures that no engine has are left
    out."""
    found = [(of, figures) for of in results for figures in of.rates if figures.per_s == rate]
    found.sort(key=lambda pair: _mean_of(pair[1].lag_p99_ms))
    keys = [key for key in AT_RATE if any(getattr(figures, key) for _, figures in found)]
    columns = ("engine", *(AT_RATE[key] for key in keys), "verdict")
    rows = [
        (_name(of), *(_estimate(getattr(figures, key)) for key in keys), _verdicts(figures))
        for of, figures in found
    ]
    return f"\nAt {rate:,} events/s:\n\n{markdown_table(columns, rows)}"


def _mean_of(of: Estimate | None) -> float:
    return of.mean if of else float("inf")


def _verdicts(figures: RateFigures) -> str:
    if len(figures.verdicts) == 1:
        return next(iter(figures.verdicts))
    return ", ".join(f"{runs} × {verdict}" for verdict, runs in figures.verdicts.items())


def _caveats(results: Sequence[EngineResult]) -> str:
    pairs = [
        (text, _name(of))
        for of in results
        for text in (*of.caveats, *filter(None, (of.heap_rule,)))
    ]
    concerned: dict[str, list[str]] = {}
    for text, name in pairs:
        concerned.setdefault(text, []).append(name)
    lines = [f"- {', '.join(names)}: {text}\n" for text, names in concerned.items()]
    lines += [
        f"- {_name(of)}: the script does not create {', '.join(of.views.absent)}.\n"
        for of in results
        if of.views.absent
    ]
    return "\n" + "".join(lines) if lines else ""


def _commands(results: Sequence[EngineResult]) -> str:
    commands = dict.fromkeys(command for of in results for command in of.commands)
    return "\nTo repeat this:\n\n" + "".join(f"    {command}\n" for command in commands)
