"""Charts as data, which the page draws with uPlot."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from racetrack.metrics import DIGITS, rounded

Floats = NDArray[np.float64]

# A line is reduced to its lowest and highest point in each of this many columns. That keeps all
# peaks, and keeps the page small. The number is a third of the chart's width in pixels.
COLUMNS = 100


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a chart. `x` and `y` have equal length. `look` is the index of colour, marker and
    stroke. `low` and `high` are the ends of intervals along y (NaN: no interval)."""

    name: str
    x: Floats
    y: Floats
    look: int
    kind: Literal["line", "step", "points"] = "line"
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class Mark:
    """A marked event from `begin` to `end` on the x axis; `end` is None if the event did not
    end."""

    name: str
    begin: float
    end: float | None


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart.

    `x_form` and `y_form` are formats of values (None: three significant digits), which are followed
    by `x_unit` and `y_unit`. `band` is a span of x that is shaded (the judged window). `marks` are
    injected faults. `meaning` explains the lines; `note` states what was left out."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    x_form: str | None
    x_unit: str
    y_form: str | None
    y_unit: str
    log_x: bool = False
    log_y: bool = False
    band: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()
    meaning: str = ""
    note: str = ""


def thinned(x: Floats, y: Floats, columns: int = COLUMNS) -> tuple[Floats, Floats]:
    """Reduce a line to the lowest and the highest point in each of `columns` columns, in order of
    x. Return all points if there are few. Nothing is interpolated."""
    if len(x) <= 2 * columns:
        return x, y
    column = np.minimum((x - x[0]) / (x[-1] - x[0]) * columns, columns - 1).astype(np.intp)
    order = np.lexsort((y, column))
    starts = np.flatnonzero(np.diff(column[order], prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    kept = np.union1d(order[starts], order[ends])
    return x[kept], y[kept]


def for_page(chart: Chart) -> dict[str, Any]:
    """Return a chart in the format of page/charts.js: titles of axes, units, and the rounded points
    of each line."""
    x_decimals, y_decimals = decimals(chart.x_form), decimals(chart.y_form)
    return {
        "title": chart.title,
        "x_title": chart.x_title,
        "y_title": chart.y_title,
        "x_unit": chart.x_unit,
        "y_unit": chart.y_unit,
        "x_decimals": x_decimals,
        "y_decimals": y_decimals,
        "log_x": chart.log_x,
        "log_y": chart.log_y,
        "band": chart.band,
        "marks": [asdict(mark) for mark in chart.marks],
        "lines": [_line_for_page(line, x_decimals, y_decimals) for line in chart.lines],
    }


def _line_for_page(line: Line, x_decimals: int | None, y_decimals: int | None) -> dict[str, Any]:
    ends = {"low": line.low, "high": line.high}
    return {
        "name": line.name,
        "look": line.look,
        "kind": line.kind,
        "x": _rounded(line.x, x_decimals),
        "y": _rounded(line.y, y_decimals),
        **{end: _rounded(y, y_decimals) for end, y in ends.items() if y is not None},
    }


def decimals(form: str | None) -> int | None:
    """Return the number of decimals that a format shows; None if it shows significant digits."""
    return None if form is None else len(form.format(0.0).partition(".")[2])


def _rounded(values: Floats, decimals: int | None) -> list[float | None]:
    """Round values to one digit more than is shown, so that lines are smooth. Values that are not
    finite become None."""
    if decimals is None:
        return [rounded(float(v), DIGITS + 1) if np.isfinite(v) else None for v in values]
    return [round(float(v), decimals + 1) if np.isfinite(v) else None for v in values]
