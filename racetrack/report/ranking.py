"""The page docs/index.html: a matrix of what engines reached, and its cost, with charts.

It is generated from the files in `results/`. It does not contain the time of its generation, so the
same results give the same page.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from racetrack import config, metrics
from racetrack.analysis.claims import Estimate, WhyNot
from racetrack.analysis.table import Load, rows_of_result
from racetrack.metrics import CLIENT_CPU, Metric, rounded, significant
from racetrack.report.chart_data import Chart, Line, for_page
from racetrack.report.html import environment, joined, own_file
from racetrack.report.sheet import ABOUT_0, answers, format_estimate, is_noise
from racetrack.report.standings import (
    BELOW_SEARCH,
    HALF,
    MATRIX,
    NOT_MEASURED,
    Column,
    Standing,
    answers_of,
    caveats_of,
    name_of,
)
from racetrack.results.classes import TITLES, WORK
from racetrack.results.published import EngineResult

INFINITE = 1e300  # by what pages sort infinite figures: JSON has no such number
# Figures at half of the capacity that are shown with the rate which that was.
AT_RATE = (metrics.VIEW_LAG_P99, metrics.CPU_PER_MILLION, metrics.MEMORY_FULL_AFTER)


def ranking_page(places: Sequence[Standing]) -> str:
    """Return the page with the matrix of these results. It contains all data, so it works offline
    from `file://`."""
    looks = {
        name: look for look, name in enumerate(sorted({n for place in places for n in place.names}))
    }
    return (
        environment()
        .get_template("ranking.html.j2")
        .render(
            data=[_standing(place, looks) for place in places],
            charts=CHARTS,
            licence=own_file("uplot/LICENSE"),
            css=own_file("uplot/uPlot.min.css") + own_file("page.css") + own_file("ranking.css"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            modules=joined("charts", "ranking"),
        )
    )


def _standing(standing: Standing, looks: Mapping[str, int]) -> dict[str, Any]:
    """Return the data of a standing for the page (racetrack/report/page/ranking.js)."""
    workload, machine = standing.family
    missing = [column.title for column in MATRIX if column not in standing.columns]
    choices = {"": standing.names, **standing.by_class}
    return {
        "workload": standing.results[0].workload,
        "family": workload,
        "query": standing.queries,
        "machine": machine,
        "place": standing.place,
        "columns": [
            {
                "key": column.key,
                "title": column.title,
                "at": str(column.load or ""),
                "unit": column.metric.unit,
                "means": column.metric.means,
                "is_more_better": column.metric.better == "more",
            }
            for column in standing.columns
        ],
        "missing": missing,
        "rows": [_row(standing, result) for result in standing.results],
        "choices": {text: _choice(standing, names) for text, names in choices.items()},
        "charts": {name: for_page(_chart(standing, over, looks)) for name, over in CHARTS.items()},
    }


def _row(standing: Standing, result: EngineResult) -> dict[str, Any]:
    name = name_of(result)
    is_ranked = name in standing.samples.ranked
    return {
        "name": name,
        "engine": result.engine,
        "path": result.file_name,
        "version": f"{result.version}, {result.measured_until}",
        "unranked": "" if is_ranked else f"not ranked: computes {result.classes_of_run[WORK]}",
        "disturbed": _disturbance(result),
        "cells": {column.key: _cell(standing, name, column) for column in standing.columns},
        "answers": answers_of(result),
        "is_wrong": bool(result.views.wrong),
        "classes": "; ".join(value for key in TITLES if (value := result.classes_of_run.get(key))),
        "commands": result.commands,
        "facts": _facts(result, standing.place),
    }


def _cell(standing: Standing, name: str, column: Column) -> dict[str, Any]:
    """Return a cell of the matrix: the mean with three digits, how sure it is, the same with the
    whole interval, and the value to sort by (None: at the end, for what is not comparable). It is
    rounded, since the last digit of a mean depends on the machine that computes it."""
    estimate = standing.estimate(name, column.metric, column.load)
    why_not = standing.why_not_compared(name, column.metric, column.load)
    if why_not == BELOW_SEARCH:
        text, _, sure = BELOW_SEARCH.partition(", ")
        return {"text": text, "sure": sure, "whole": BELOW_SEARCH, "value": None}
    if estimate is None:
        is_search = column.metric in metrics.SUSTAINED and why_not == NOT_MEASURED
        sure = "not searched" if is_search else why_not
        return {"text": "", "sure": sure, "whole": "", "value": None}
    text_of = significant if math.isfinite(estimate.mean) else column.metric.number
    number = f"{'≥ ' if estimate.at_least else ''}{text_of(estimate.mean)}"
    rate = standing.estimate(name, metrics.ACHIEVED, HALF) if column.metric in AT_RATE else None
    at_rate = f"at {significant(rate.mean)}/s" if rate and math.isfinite(estimate.mean) else ""
    is_recovery = column.metric == metrics.NORMAL_AFTER
    killed = standing.before_the_kill(name, is_brief=True) if is_recovery else ""
    order = standing.other_order(name, column.metric, column.load)
    missed = standing.missed(name, column.load)
    facts = (why_not or _sureness(estimate), missed, at_rate, killed, order)
    return {
        "text": ABOUT_0 if is_noise(column.metric, estimate) else number,
        "sure": ", ".join(dict.fromkeys(filter(None, facts))),
        "whole": format_estimate(column.metric, estimate),
        "value": None if why_not or order else rounded(min(estimate.mean, INFINITE), 4),
    }


def _sureness(estimate: Estimate) -> str:
    if estimate.n == 1:
        return WhyNot.ONE_RUN
    if estimate.at_limit:
        return f"in {estimate.at_limit} of {estimate.n} runs"
    if estimate.low is None or estimate.high is None:
        return ""
    widest = max(estimate.high / estimate.mean - 1, 1 - estimate.low / estimate.mean)
    return f"{'~ ' if estimate.is_imprecise else ''}± {100 * widest:.0f} %"


def _disturbance(result: EngineResult) -> str:
    """Return what disturbed the runs more than is allowed by default; empty if nothing did."""
    allowed, noise = config.defaults(), result.noise
    foreign_pct, steal_pct = noise.foreign_cpu_max_pct or 0.0, noise.steal_max_pct or 0.0
    disturbances = []
    if foreign_pct > allowed.foreign_cpu_max_pct:
        disturbances.append(f"other programs used up to {significant(foreign_pct)} % of a core")
    if steal_pct > allowed.steal_max_pct:
        disturbances.append(f"the hypervisor took up to {significant(steal_pct)} % of the CPU time")
    return f"disturbed: {', '.join(disturbances)}" if disturbances else ""


def _facts(result: EngineResult, place: str) -> list[tuple[str, str]]:
    """Return titles and texts on how a result was measured."""
    days = " to ".join(dict.fromkeys((result.measured_from, result.measured_until)))
    noise, raw = result.noise, result.raw
    clients = [
        window.figures[CLIENT_CPU.key]
        for window in result.windows
        if CLIENT_CPU.key in window.figures
    ]
    client = (
        f"{CLIENT_CPU.number(min(clients))} to {CLIENT_CPU.text(max(clients))}" if clients else ""
    )
    remarks = dict.fromkeys(
        f"{row.window}: {row.remark}" for row in rows_of_result(result) if row.remark
    )
    facts = {
        "Measured": f"{days}, {place}, kernel {result.machine.kernel}",
        "Versions": _pairs(result.versions),
        "Changed settings": _pairs(result.settings) or "none",
        "Other programs": f"at most {metrics.FOREIGN_CPU.text(noise.foreign_cpu_max_pct)}",
        "Taken by the hypervisor": f"at most {metrics.STEAL.text(noise.steal_max_pct)}",
        "Core speed": f"{metrics.CORE_SPEED.number(noise.core_min_mib_per_s)} to"
        f" {metrics.CORE_SPEED.text(noise.core_max_mib_per_s)}",
        "Read from memory": f"{metrics.MEMORY_READ.number(noise.memory_read_min_ns)} to"
        f" {metrics.MEMORY_READ.text(noise.memory_read_max_ns)}"
        if noise.memory_read_max_ns
        else "",
        "Client that received the views": client or "a part of the harness",
        "Views missing": ", ".join(result.views.absent),
        "Views wrong": ", ".join(result.views.wrong),
        "Before comparing": " ".join(result.caveats),
        "Remarks": "; ".join(remarks),
        "Left out": "; ".join(result.left_out),
        "Raw data": f"{raw.files} files in {', '.join(raw.folders)}; SHA-256 {raw.sha256}",
    }
    return [(title, text) for title, text in facts.items() if text]


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _choice(standing: Standing, names: Collection[str]) -> dict[str, Any]:
    """Return what holds among some of the results, from the claims about all: the answers, and the
    leaders of each column."""
    made = [claim.among(names) for claim in standing.claims]
    mine = [result for result in standing.results if name_of(result) in names]
    unverified = [name_of(result) for result in mine if not result.views.runs]
    return {
        "names": names,
        "answers": [
            *answers(standing.samples, [claim for claim in made if len(claim.order) > 1], names),
            *caveats_of(mine),
            *([f"The answers of {', '.join(unverified)} were not verified."] if unverified else []),
        ],
        "best": {column.key: standing.leaders(column, names) for column in standing.columns},
    }


@dataclass(frozen=True)
class OverLoad:
    """A chart of a figure over shares of capacity, or over the rates that came about."""

    metric: Metric
    title: str
    x_title: str
    x_unit: str
    over_shares: bool


CHARTS = {
    "lag": OverLoad(
        metrics.VIEW_LAG_P99,
        "View lag against share of capacity",
        "% of the engine’s capacity",
        " %",
        True,
    ),
    "cost": OverLoad(
        metrics.CPU_PER_MILLION, "Cost against load", metrics.ACHIEVED.unit, "/s", False
    ),
}


def _chart(standing: Standing, over: OverLoad, looks: Mapping[str, int]) -> Chart:
    return Chart(
        title=over.title,
        x_title=over.x_title,
        y_title=f"{over.metric.title}, {over.metric.unit}",
        lines=tuple(_line(standing, over, name, looks[name]) for name in standing.names),
        x_form="{:.0f}",
        x_unit=over.x_unit,
        y_form=None,
        y_unit=f" {over.metric.unit}",
        log_x=not over.over_shares,
        log_y=True,
    )


def _line(standing: Standing, over: OverLoad, name: str, look: int) -> Line:
    """Return a line with the finite figures of an engine; a logarithmic axis has no place for 0."""
    points = []
    for load in standing.loads_of(over.metric):
        at, estimate = _x(standing, over, name, load), standing.estimate(name, over.metric, load)
        if estimate and at is not None and 0 < estimate.mean < math.inf:
            points.append((at, estimate.mean, estimate.low or math.nan, estimate.high or math.nan))
    x, y, low, high = np.array(sorted(points)).reshape(-1, 4).T
    return Line(name, x, y, look, "points", low, high)


def _x(standing: Standing, over: OverLoad, name: str, load: Load) -> float | None:
    if over.over_shares:
        return None if load.share is None else 100 * load.share
    achieved = standing.estimate(name, metrics.ACHIEVED, load)
    return achieved.mean if achieved else load.per_s or None
