"""The pages docs/index.html and docs/results.md: a matrix of what engines reached, and its cost.

Both are generated from the files in `results/`. They do not contain the time of their generation,
so the same results give the same pages.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os.path import relpath
from pathlib import Path
from typing import Any

from racetrack import config, metrics
from racetrack.analysis.claims import Claim, Estimate, Key, Samples, WhyNot, claims, estimates
from racetrack.analysis.table import Load, Place, Row, rows_of_result
from racetrack.errors import UsageError
from racetrack.metrics import Metric, rounded, significant
from racetrack.report.html import environment, joined, own_file
from racetrack.report.render import markdown_table
from racetrack.report.sheet import answers, format_estimate
from racetrack.results.classes import TITLES, WORK, differing
from racetrack.results.folder import read_record
from racetrack.results.json_file import write_whole
from racetrack.results.published import EngineResult, slug_of_place


@dataclass(frozen=True)
class Column:
    """A column of the matrix: a figure of whole runs, or at a share of the engine's capacity."""

    metric: Metric
    share: float | None = None
    name: str = ""  # if it is not the figure's

    @property
    def title(self) -> str:
        """Name without load and unit."""
        return self.name or self.metric.title

    @property
    def load(self) -> Load | None:
        """The load at which it is measured."""
        return None if self.share is None else Load(0, self.share)

    @property
    def key(self) -> str:
        """Name in the page's data."""
        return self.metric.key if self.share is None else f"{self.metric.key}@{self.share:g}"

    @property
    def heading(self) -> str:
        """Title, load and unit."""
        at = f" at {self.load}" if self.load else ""
        return f"{self.title}{at}, {self.metric.unit}"


MATRIX = (
    Column(metrics.VIEW_LAG_P99, 0.5, f"freshness: {metrics.VIEW_LAG_P99.title}"),
    *(Column(metric, name=f"how far: {metric.title}") for metric in metrics.SUSTAINED),
    Column(metrics.CAPACITY),
    Column(metrics.CPU_PER_MILLION, 0.5),
    Column(metrics.BROKER_FOR_ENGINE, 0.5, "cost in the broker"),
    Column(metrics.BASE_CPU, name="idle cost"),
    Column(metrics.NORMAL_AFTER, name="recovery from a kill"),
    Column(metrics.MEMORY_FULL_AFTER),
)
INTRODUCTION = """# Results

<!-- Generated from results/ by `./race publish`. Do not edit. -->

What engines reached, and what it cost. [index.html](index.html) draws these figures;
[results/](../results/README.md) has them as data, with versions, settings and noise.

- **Compare figures within a section only**: each has its own workload and machine, which the
  engine shares with broker, generator and database.
- A figure is a geometric mean over [warmed-up runs on fresh stacks](compare.md#how-it-measures) of
  one session, with its 95 % interval; without one it comes from a single run. “~” marks an interval
  beyond ± 15 %, and “≥” what something other than the engine limited.
- [View lag](views.md) is the age of the oldest event that is due but not yet in a view that a
  client follows. Costs are the engine's alone, but for that in the broker. The idle cost is
  extrapolated to rate 0.
- A difference is claimed by [one rule](compare.md#when-engines-differ), for all questions of a
  section together. Engines of different [classes](engines.md#classes) do different work; those that
  compute a view when it is read are not ranked.
- Answers are the views, compared row by row with their sources in runs with `--verify`.
"""
LOW = "below a tenth of a capacity"  # why nothing is ranked at a load
_PLACE = Place("", "", "")


@dataclass(frozen=True)
class Standing:
    """The results of one workload, machine and runtime, with their rows, estimates and claims.
    Variants are the names of results."""

    results: tuple[EngineResult, ...]
    samples: Samples
    estimates: Mapping[Key, Estimate]
    claims: tuple[Claim, ...]

    @property
    def rows(self) -> Sequence[Row]:
        """Rows of all results."""
        return self.samples.rows

    @property
    def place(self) -> str:
        """Machine and runtime for people."""
        return f"{self.results[0].machine}, {self.results[0].runtime}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the results."""
        return tuple(map(name_of, self.results))

    @property
    def columns(self) -> list[Column]:
        """Columns of the matrix for which any engine has a figure."""
        return [
            column
            for column in MATRIX
            if any(self.estimate(name, column.metric, column.load) for name in self.names)
        ]

    def loads_of(self, metric: Metric) -> list[Load]:
        """Return the loads at which any engine has a figure: rates, then shares, rising."""
        loads = {load for _, key, load in self.estimates if load and key == metric.key}
        return sorted(loads, key=lambda load: (load.share or 0, load.per_s))

    def estimate(self, name: str, metric: Metric, load: Load | None) -> Estimate | None:
        """Return the estimate of a figure; None if it was not measured."""
        return self.estimates.get((name, metric.key, load))

    def has_held(self, name: str, load: Load | None) -> bool:
        """Return whether a result held a load in all runs."""
        return all(
            row.held
            for row in self.rows
            if load and row.load and (row.variant, row.load.asked) == (name, load)
        )

    def leaders(self, column: Column, among: Collection[str]) -> tuple[str, ...]:
        """Return the best of some results in a column, and all from which no difference is claimed
        to it; empty if no difference is claimed at all."""
        for claim in self.claims:
            if (claim.metric, claim.load) == (column.metric, column.load):
                some = claim.among(among)
                return some.leaders if some.order and some.is_decided else ()
        return ()


def write(root: Path, folder: Path) -> list[Path]:
    """Write the pages index.html and results.md into `folder` from all results below `root`. Return
    their paths.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    found = standings(read_results(root))
    pages = {
        folder / "index.html": ranking_page(found),
        folder / "results.md": results_page(found, relpath(root, folder)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for page, text in pages.items():
        write_whole(page, text)
    return list(pages)


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


def standings(results: Sequence[EngineResult]) -> list[Standing]:
    """Return the results by workload, machine and runtime."""
    found = []
    for _, of_place in groupby(sorted(results, key=_place), key=_place):
        mine = tuple(of_place)
        rows = tuple(
            replace(row, variant=name_of(result), place=_PLACE)
            for result in mine
            for row in rows_of_result(result)
        )
        samples = Samples(rows)
        found.append(Standing(mine, samples, estimates(samples), tuple(claims(samples))))
    return found


def _place(result: EngineResult) -> tuple[str, str]:
    return result.workload, slug_of_place(result.machine, result.runtime)


def name_of(result: EngineResult) -> str:
    """Return the name of a result for people: the engine's title, and the variant."""
    return result.title + (f" ({result.variant})" if result.variant else "")


def ranking_page(found: Sequence[Standing]) -> str:
    """Return the page with the matrix of these results. It contains all data, so it works offline
    from `file://`."""
    looks = {name: look for look, name in enumerate(sorted({n for of in found for n in of.names}))}
    return (
        environment()
        .get_template("ranking.html.j2")
        .render(
            data=[_standing(of, looks) for of in found],
            charts=CHARTS,
            licence=own_file("uplot/LICENSE"),
            css=own_file("uplot/uPlot.min.css") + own_file("page.css") + own_file("ranking.css"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            modules=joined("charts", "ranking"),
        )
    )


def _standing(of: Standing, looks: Mapping[str, int]) -> dict[str, Any]:
    """Return the data of a standing for the page (racetrack/report/page/ranking.js)."""
    missing = [column.title for column in MATRIX if column not in of.columns]
    return {
        "workload": of.results[0].workload,
        "machine": _place(of.results[0])[1],
        "place": of.place,
        "columns": [
            {
                "key": column.key,
                "title": column.title,
                "at": str(column.load or ""),
                "unit": column.metric.unit,
                "means": column.metric.means,
                "is_more_better": column.metric.better == "more",
            }
            for column in of.columns
        ],
        "missing": missing,
        "rows": [_row(of, result) for result in of.results],
        "choices": {text: _choice(of, names) for text, names in _choices(of).items()},
        "charts": {name: _lines(of, name, looks) for name in CHARTS},
    }


def _row(of: Standing, result: EngineResult) -> dict[str, Any]:
    name = name_of(result)
    is_ranked = name in of.samples.ranked
    return {
        "name": name,
        "engine": result.engine,
        "path": result.file_name,
        "version": f"{result.version}, {result.measured_until}",
        "unranked": "" if is_ranked else f"not ranked: computes {result.classes_of_run[WORK]}",
        "disturbed": _disturbance(result),
        "cells": {column.key: _cell(of, name, column) for column in of.columns},
        "answers": _answers(result),
        "is_wrong": bool(result.views.wrong),
        "classes": "; ".join(value for key in TITLES if (value := result.classes_of_run.get(key))),
        "commands": result.commands,
        "facts": _facts(result, of.place),
    }


def _cell(of: Standing, name: str, column: Column) -> dict[str, Any]:
    """Return a cell of the matrix: the mean with three digits, how sure it is, the same with the
    whole interval, and the value to sort by (None: at the end)."""
    estimate = of.estimate(name, column.metric, column.load)
    if estimate is None:
        return {"text": "", "sure": "not measured", "whole": "", "value": None}
    at_least = "≥ " if estimate.at_least else ""
    has_held = of.has_held(name, column.load)
    return {
        "text": at_least + significant(estimate.mean),
        "sure": _sureness(estimate) if has_held else "did not hold this load",
        "whole": format_estimate(column.metric, estimate),
        "value": estimate.mean if has_held and math.isfinite(estimate.mean) else None,
    }


def _sureness(of: Estimate) -> str:
    if of.n == 1:
        return WhyNot.ONE_RUN
    if of.low is None or of.high is None:
        return f"not resolved: {of.why_not}" if of.why_not else ""
    widest = max(of.high / of.mean - 1, 1 - of.low / of.mean)
    return f"{'~ ' if of.is_imprecise else ''}± {100 * widest:.0f} %"


def _disturbance(result: EngineResult) -> str:
    """Return what disturbed the runs more than is allowed by default; empty if nothing did."""
    allowed, noise = config.defaults(), result.noise
    foreign_pct, steal_pct = noise.foreign_cpu_max_pct or 0.0, noise.steal_max_pct or 0.0
    disturbances = []
    if foreign_pct > allowed.foreign_cpu_max_pct:
        disturbances.append(f"other programs used up to {significant(foreign_pct)} % of a core")
    if steal_pct > allowed.steal_max_pct:
        disturbances.append(f"other machines took up to {significant(steal_pct)} % of the CPU time")
    return f"disturbed: {', '.join(disturbances)}" if disturbances else ""


def _facts(result: EngineResult, place: str) -> list[tuple[str, str]]:
    """Return titles and texts on how a result was measured."""
    days = " to ".join(dict.fromkeys((result.measured_from, result.measured_until)))
    noise, raw = result.noise, result.raw
    facts = {
        "Measured": f"{days}, {place}, kernel {result.machine.kernel}",
        "Versions": _pairs(result.versions),
        "Changed settings": _pairs(result.settings) or "none",
        "Other programs": f"at most {metrics.FOREIGN_CPU.text(noise.foreign_cpu_max_pct)}",
        "Taken by the hypervisor": f"at most {metrics.STEAL.text(noise.steal_max_pct)}",
        "Core speed": f"{metrics.CORE_SPEED.number(noise.core_min_mib_per_s)} to"
        f" {metrics.CORE_SPEED.text(noise.core_max_mib_per_s)}",
        "Views missing": ", ".join(result.views.absent),
        "Views wrong": ", ".join(result.views.wrong),
        "Before comparing": " ".join(result.caveats),
        "Left out": "; ".join(result.left_out),
        "Raw data": f"{raw.files} files in {', '.join(raw.folders)}; SHA-256 {raw.sha256}",
    }
    return [(title, text) for title, text in facts.items() if text]


def _pairs(of: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in of.items())


def _choices(of: Standing) -> dict[str, tuple[str, ...]]:
    """Return the names of all results, by "", and of those of each class, by a text such as
    `where results live: served`, for all classes in which they differ."""
    classes = {name_of(result): result.classes_of_run for result in of.results}
    found: dict[str, tuple[str, ...]] = {"": tuple(classes)}
    for key, title in TITLES.items():
        values = dict.fromkeys(own[key] for own in classes.values() if key in own)
        for value in values if len(values) > 1 else ():
            names = (name for name, own in classes.items() if own.get(key) == value)
            found[f"{title}: {value}"] = tuple(names)
    return found


def _choice(of: Standing, names: Collection[str]) -> dict[str, Any]:
    """Return what holds among some of the results, from the claims about all: the answers, and the
    leaders of each column."""
    rows = [row for row in of.rows if row.variant in names]
    made = [claim.among(names) for claim in of.claims]
    mine = [one for one in of.results if name_of(one) in names]
    unverified = [name_of(one) for one in mine if not one.views.runs]
    return {
        "names": names,
        "answers": [
            *answers(rows, [claim for claim in made if len(claim.order) > 1]),
            *_caveats(mine),
            *([f"The answers of {', '.join(unverified)} were not verified."] if unverified else []),
        ],
        "best": {column.key: of.leaders(column, names) for column in of.columns},
    }


@dataclass(frozen=True)
class Chart:
    """A chart of a figure over the load: over shares of capacity, or over the rates that came
    about."""

    metric: Metric
    title: str
    x_title: str
    x_unit: str
    over_shares: bool


CHARTS = {
    "lag": Chart(
        metrics.VIEW_LAG_P99, "View lag against load", "% of the engine’s capacity", " %", True
    ),
    "cost": Chart(metrics.CPU_PER_MILLION, "Cost against load", "events/s", "/s", False),
}


def _lines(of: Standing, name: str, looks: Mapping[str, int]) -> dict[str, Any]:
    """Return the data of a chart in the format of page/charts.js."""
    chart = CHARTS[name]
    return {
        "title": chart.title,
        "x_title": chart.x_title,
        "x_unit": chart.x_unit,
        "x_decimals": 0,
        "y_title": f"{chart.metric.title}, {chart.metric.unit}",
        "y_unit": f" {chart.metric.unit}",
        "y_decimals": None,
        "log_x": not chart.over_shares,
        "log_y": True,
        "lines": [_line(of, chart, engine, looks[engine]) for engine in of.names],
    }


def _line(of: Standing, chart: Chart, name: str, look: int) -> dict[str, Any]:
    """Return a line with the finite figures of an engine; a logarithmic axis has no place for 0."""
    points: list[dict[str, float | None]] = []
    for load in of.loads_of(chart.metric):
        x, estimate = _x(of, chart, name, load), of.estimate(name, chart.metric, load)
        if estimate and x is not None and 0 < estimate.mean < math.inf:
            ends = {"low": estimate.low or None, "high": estimate.high}
            point = {"x": x, "y": estimate.mean, **ends}
            points.append({key: value and rounded(value, 4) for key, value in point.items()})
    points.sort(key=lambda point: point["x"] or 0)
    return {
        "name": name,
        "look": look,
        "kind": "points",
        **{key: [point[key] for point in points] for key in ("x", "y", "low", "high")},
    }


def _x(of: Standing, chart: Chart, name: str, load: Load) -> float | None:
    if chart.over_shares:
        return None if load.share is None else 100 * load.share
    achieved = of.estimate(name, metrics.ACHIEVED, load)
    return achieved.mean if achieved else load.per_s or None


def results_page(found: Sequence[Standing], root: str) -> str:
    """Return docs/results.md, with a section for each standing. `root` is the path of `results/`
    relative to the page."""
    return (INTRODUCTION + "".join(_section(one, root) for one in found)).rstrip()


def _section(of: Standing, root: str) -> str:
    first = of.results[0]
    machine = first.machine
    numbers = f" ({machine.cpu_numbers})" if machine.cpu_numbers else ""
    days = {day for one in of.results for day in (one.measured_from, one.measured_until)}
    when = " to ".join(dict.fromkeys((min(days), max(days))))
    memory = "" if machine.memory_gib is None else f", {machine.memory_gib:.0f} GiB"
    quota = f", {machine.quota}" if machine.quota else ""
    heading = (
        f"{first.workload}: {machine.cpu_model}{numbers}, {machine.cores} cores{quota}{memory}"
    )
    caveats = "".join(f"- {line}\n" for line in _caveats(of.results))
    commands = dict.fromkeys(command for result in of.results for command in result.commands)
    parts = [
        f"\n## {heading}\n\nRuntime {first.runtime}, measured {when}.\n\n",
        "".join(f"- {line}\n" for line in answers(of.rows, of.claims)),
        f"\n{_matrix(of, root)}",
        *(_by_load(of, metric) for metric in (metrics.VIEW_LAG_P99, metrics.CPU_PER_MILLION)),
        f"\n{caveats}" if caveats else "",
        "\nTo repeat this:\n\n" + "".join(f"    {command}\n" for command in commands),
    ]
    return "".join(parts)


def _matrix(of: Standing, root: str) -> str:
    """Return the matrix as a table: a row for each engine, and a column for each figure."""
    headings = ("engine", "version", *(column.heading for column in of.columns), "answers", "class")
    rows = []
    for result in sorted(of.results, key=lambda one: name_of(one) not in of.samples.ranked):
        name = name_of(result)
        unranked = "" if name in of.samples.ranked else " (not ranked)"
        figures = (_figure(of, name, column.metric, column.load) for column in of.columns)
        row = (
            f"[{name}]({root}/{result.file_name}){unranked}",
            result.version,
            *figures,
            _answers(result),
            _class(of, result),
        )
        rows.append(row)
    return markdown_table(headings, rows)


def _by_load(of: Standing, metric: Metric) -> str:
    """Return a table of a figure: a row for each load, and a column for each engine."""
    loads = of.loads_of(metric)
    if not loads:
        return ""
    rows = [
        (
            f"{load}{'' if of.samples.is_ranked_at(load) else f' ({LOW})'}",
            *(_figure(of, name, metric, load) for name in of.names),
        )
        for load in loads
    ]
    title = metric.title[0].upper() + metric.title[1:]
    return f"\n{title}, {metric.unit}:\n\n{markdown_table(('load', *of.names), rows)}"


def _figure(of: Standing, name: str, metric: Metric, load: Load | None) -> str:
    text = format_estimate(metric, of.estimate(name, metric, load))
    return text if of.has_held(name, load) or not text else f"{text}; not held"


def _class(of: Standing, result: EngineResult) -> str:
    """Return the classes of a result in which results differ; all if they do not."""
    keys = differing(of.samples.classes.values()) or TITLES
    return "; ".join(filter(None, map(result.classes_of_run.get, keys)))


def _answers(result: EngineResult) -> str:
    views = result.views
    if not views.runs:
        return "not checked"
    of = "" if views.of_workload is None else f" of {views.of_workload}"
    wrong = f", wrong: {', '.join(views.wrong)}" if views.wrong else ""
    return f"{len(views.right)}{of} views right{wrong}"


def _caveats(results: Sequence[EngineResult]) -> list[str]:
    """Return the caveats and missing views of results, each with the names of those concerned."""
    concerned: dict[str, list[str]] = {}
    for result in results:
        absent = ", ".join(result.views.absent)
        missing = [f"The script does not create {absent}."] if absent else []
        for text in (*result.caveats, *missing):
            concerned.setdefault(text, []).append(name_of(result))
    return [f"{', '.join(names)}: {text}" for text, names in concerned.items()]
