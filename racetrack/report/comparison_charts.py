"""Charts over many runs: figures against rate or against a setting, and limits."""

from collections.abc import Sequence

import numpy as np

from racetrack.report.chart import Chart, Line
from racetrack.report.collect import Limit
from racetrack.report.definitions import BY_KEY
from racetrack.report.groups import Group, Table
from racetrack.results.reference import Published

FIGURES_BY_RATE = (
    *("cpu_mean_pct", "rss_max_gib", "cpu_s_per_million", "lag_p50_ms"),
    *("view_lag_p99_ms", "read_time_p99_ms", "read_age_p99_ms"),
)
FIGURES_BY_SETTING = ("cpu_mean_pct", "cpu_user_pct", "cpu_system_pct", "rss_max_gib")
# Rates this far apart stand on top of each other unless the axis is logarithmic.
LOG_FROM = 20


def by_rate(table: Table, number: int, published: Published | None) -> list[Chart]:
    """A chart a figure, a line an engine; none where only one rate was run."""
    if len(table.rates) < 2:
        return []
    made = []
    for key in FIGURES_BY_RATE:
        lines = []
        for look, label in enumerate(table.labels):
            points = [(group.rate, group) for group in table.groups if group.label == label]
            lines += _means(label, key, [(float(rate), group) for rate, group in points], look)
        lines += _published(key, published, len(lines))
        if lines:
            rates = [x for line in lines for x in line.x]
            made.append(
                _chart(f"table{number}_{key}_against_rate", key, "pageviews/s", lines, rates)
            )
    return made


def by_setting(table: Table, number: int, settings: Sequence[str]) -> list[Chart]:
    """For each setting that a sweep varied over numbers: a line an engine and rate."""
    made = []
    for setting in settings:
        for key in FIGURES_BY_SETTING:
            lines: list[Line] = []
            for engine, rate in dict.fromkeys((g.runs[0].engine, g.rate) for g in table.groups):
                points = [
                    (value, group)
                    for group in table.groups
                    if (group.runs[0].engine, group.rate) == (engine, rate)
                    and (value := _value(group, setting)) is not None
                ]
                if len(points) > 1:
                    lines += _means(f"{engine} at {rate:,}/s", key, sorted(points), len(lines))
            if lines:
                name = f"table{number}_{key}_against_{setting}"
                made.append(_chart(name, key, setting, lines, []))
    return made


def limits_chart(limits: Sequence[Limit], number: int) -> Chart | None:
    """A search a row, those of one engine together: what it sustained within each bound, and its
    capacity. All are of one kind of load."""
    lines = []
    engines = list(dict.fromkeys(each.record.engine for each in limits))
    records = sorted((each.record for each in limits), key=lambda one: engines.index(one.engine))
    for row, limit in enumerate(records):
        held = [one.held_per_s for one in limit.sustainable]
        rates: list[float] = [rate for rate in held if rate is not None]
        if limit.capacity:
            rates.append(limit.capacity.per_s)
        if rates:
            y = np.full(len(rates), float(row))
            look = engines.index(limit.engine)
            lines.append(Line(limit.engine, np.array(rates), y, look, "points"))
    if not lines:
        return None
    return Chart(
        name=f"limits{number}",
        title="Limits: highest rates held within each bound, and capacity",
        x_title=f"{limits[0].record.of}/s",
        y_title="",
        lines=tuple(lines),
        x_form="{:,.0f}",
        x_unit="/s",
        y_form="",
        y_unit="",
        meaning="An engine's last point is its capacity.",
    )


def _chart(name: str, key: str, x_title: str, lines: Sequence[Line], rates: list[float]) -> Chart:
    figure = BY_KEY[key]
    return Chart(
        name=name,
        title=f"{figure.title[0].upper()}{figure.title[1:]} against {x_title}",
        x_title=x_title,
        y_title=figure.unit,
        lines=tuple(lines),
        x_form="{:,.0f}" if rates else "{:,}",
        x_unit="/s" if rates else "",
        y_form=figure.form or "{:,.2f}",
        y_unit=f" {figure.unit}",
        meaning=f"{figure.means} Means over repeats, bars: 95 % interval.",
        log_y=key == "cpu_s_per_million" and _far_apart([y for line in lines for y in line.y]),
        log_x=_far_apart(rates),
    )


def _far_apart(values: Sequence[float]) -> bool:
    return bool(values) and 0 < LOG_FROM * min(values) < max(values)


def _means(label: str, key: str, points: Sequence[tuple[float, Group]], look: int) -> list[Line]:
    known = [(x, mean) for x, group in points if (mean := group.means[key]) is not None]
    if not known:
        return []
    half = [np.nan if mean.half is None else mean.half for _, mean in known]
    x, y = [x for x, _ in known], [mean.mean for _, mean in known]
    return [Line(label, np.array(x), np.array(y), look, "points", np.array(half))]


def _published(key: str, published: Published | None, look: int) -> list[Line]:
    """Marked as another machine's, in a look of its own, and never joined by a line."""
    rows = [
        (row.engine, float(row.pageviews_per_s), float(value))
        for row in (published.results if published else ())
        if (value := getattr(row, key, None)) is not None
    ]
    return [
        Line(
            f"{engine}, 2022, another machine",
            np.array([rate for of, rate, _ in rows if of == engine]),
            np.array([value for of, _, value in rows if of == engine]),
            look + number,
            "foreign",
        )
        for number, engine in enumerate(dict.fromkeys(of for of, _, _ in rows))
    ]


def _value(group: Group, setting: str) -> float | None:
    try:
        return float(group.runs[0].config.get(setting, ""))
    except ValueError:
        return None
