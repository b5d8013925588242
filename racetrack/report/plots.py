"""Which charts a report has, drawn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from racetrack.report import comparison_charts, timeseries_charts
from racetrack.report.chart import Chart
from racetrack.report.collect import Collection
from racetrack.report.draw import drawn
from racetrack.report.groups import Table
from racetrack.results.reference import Published


@dataclass(frozen=True)
class Plot:
    """A chart, drawn: `svg` as a file's text, `readings` what a pointer may read."""

    chart: Chart
    short_id: str
    svg: str
    png: bytes
    readings: dict[str, Any]


def plots(
    collection: Collection, tables: Sequence[Table], published: Published | None
) -> tuple[dict[str, list[Plot]], dict[str, list[str]]]:
    """The plots by run tag, `table<number>` and `limits<number>`; by tag what runs lack."""
    charts: dict[str, list[Chart]] = {}
    gaps: dict[str, list[str]] = {}
    for number, table in enumerate(tables, start=1):
        charts[f"table{number}"] = [
            *comparison_charts.by_rate(table, number, published),
            *comparison_charts.by_setting(table, number, collection.varied),
        ]
    for number, limits in enumerate(collection.limits_by_place.values(), start=1):
        one = comparison_charts.limits_chart(limits, number)
        charts[f"limits{number}"] = [one] if one else []
    for run in collection.runs:
        charts[run.tag], gaps[run.tag] = timeseries_charts.charts(run)
    made: dict[str, list[Plot]] = {}
    total = 0
    for name, of in charts.items():
        made[name] = []
        for chart in of:
            svg, png, readings = drawn(chart)
            total += 1
            made[name].append(
                Plot(replace(chart, name=_file_name(chart.name)), f"p{total}", svg, png, readings)
            )
    return made, gaps


def _file_name(name: str) -> str:
    """Parts of it are read from files, and may hold anything."""
    return re.sub(r"[^\w.-]", "_", name)
