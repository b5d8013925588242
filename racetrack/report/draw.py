"""Charts as data, which the page draws with uPlot; and their drawing as SVG and PNG files."""

import io
from dataclasses import asdict, dataclass
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A line is reduced to its lowest and highest point in each of this many columns. That keeps all
# peaks, and keeps the page small. The number is a third of the chart's width in pixels.
COLUMNS = 100
# Okabe and Ito's colours, distinguishable with any colour vision. Yellow is left out, since it is
# too pale on white. Each colour has its own stroke and marker.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
STROKES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 3)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P")
INK, MUTED, GRID, PAPER, BAND = "#1b1f24", "#59636f", "#d5dae1", "#fffffe", "#eef1f5"
# Size in inches. At 72 points per inch, 4.6 in are 331 CSS pixels, which fit on a phone's screen.
SIZE_IN, PNG_DPI = (4.6, 2.7), 200
# Two names longer than LONG_NAME do not fit next to each other in the legend. ROW_IN is the height
# of a row in the legend.
LONG_NAME, ROW_IN = 28, 0.17
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "racetrack",
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.8,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.labelcolor": INK,
    "path.simplify": False,
    # Names come from run folders, so a dollar sign must not start a formula.
    "text.parse_math": False,
}


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a chart. `x` and `y` have equal length. `look` is the index of colour, marker and
    stroke. `half` contains half-widths of intervals (NaN: no interval), along x for `dots` and
    along y for all others."""

    name: str
    x: Floats
    y: Floats
    look: int
    kind: Literal["line", "step", "points", "dots"] = "line"
    half: Floats | None = None


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

    `name` is the name of its files without suffix. `x_form` and `y_form` are formats of values,
    which are followed by `x_unit` and `y_unit`. `band` is a span of x that is shaded (the judged
    window). `marks` are injected faults. `meaning` explains the lines; `note` states what was left
    out. With `rows`, y is not a value: a point at 2.3 belongs to row 2."""

    name: str
    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    x_form: str
    x_unit: str
    y_form: str
    y_unit: str
    log_x: bool = False
    log_y: bool = False
    band: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()
    rows: tuple[str, ...] = ()
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


def drawn(chart: Chart) -> tuple[bytes, bytes]:
    """Return the chart as SVG (light theme) and PNG."""
    with mpl.rc_context(STYLE):
        columns, taller_in = _legend(chart)
        figure = Figure(figsize=(SIZE_IN[0], SIZE_IN[1] + taller_in), layout="constrained")
        axes = figure.subplots()
        _axes(axes, chart)
        for line in chart.lines:
            _draw(axes, line)
        _fit(axes, chart)
        figure.legend(
            loc="outside lower left",
            ncols=columns,
            frameon=False,
            handlelength=2.6,
            borderpad=0.1,
        )
        png = io.BytesIO()
        FigureCanvasAgg(figure).print_figure(png, format="png", dpi=PNG_DPI)
        svg = io.BytesIO()
        # Omit the date, so that the same data gives the same file.
        FigureCanvasSVG(figure).print_figure(svg, format="svg", metadata={"Date": None})
        return svg.getvalue(), png.getvalue()


def _legend(chart: Chart) -> tuple[int, float]:
    """Return the number of columns of the legend, and the extra height for it in inches."""
    if max((len(line.name) for line in chart.lines), default=0) <= LONG_NAME:
        return 2, 0.0
    return 1, ROW_IN * (len(chart.lines) // 2)


def for_page(chart: Chart) -> dict[str, Any]:
    """Return a chart in the format of page/charts.js: titles of axes, units, and the rounded points
    of each line."""
    x_decimals, y_decimals = _decimals(chart.x_form), _decimals(chart.y_form)
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


def _line_for_page(line: Line, x_decimals: int, y_decimals: int) -> dict[str, Any]:
    ends: dict[str, Any] = {}
    if line.half is not None:
        ends = {
            "low": _rounded(line.y - line.half, y_decimals),
            "high": _rounded(line.y + line.half, y_decimals),
        }
    return {
        "name": line.name,
        "look": line.look,
        "kind": line.kind,
        "x": _rounded(line.x, x_decimals),
        "y": _rounded(line.y, y_decimals),
        **ends,
    }


def _decimals(form: str) -> int:
    """Return the number of decimals that a format shows."""
    return len(form.format(0.0).partition(".")[2])


def _rounded(values: Floats, decimals: int) -> list[float | None]:
    """Round values to one decimal more than is shown, so that lines are smooth. Values that are not
    finite become None."""
    return [round(float(v), decimals + 1) if np.isfinite(v) else None for v in values]


def _axes(axes: Axes, chart: Chart) -> None:
    axes.set_title(chart.title)
    axes.set_xlabel(chart.x_title)
    axes.set_ylabel(chart.y_title)
    axes.grid(visible=True, axis="y")
    axes.spines[["top", "right", "left"]].set_visible(False)
    if chart.band:
        axes.axvspan(*chart.band, color=BAND, zorder=0, linewidth=0)
    for mark in chart.marks:
        _mark(axes, mark)
    if chart.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=6))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _tick(x)))
    if chart.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _tick(y)))


def _mark(axes: Axes, mark: Mark) -> None:
    """Draw a vertical line where the event begins, labelled with its name, and another where it
    ends, if it has ended."""
    axes.axvline(mark.begin, color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
    axes.annotate(
        mark.name,
        (mark.begin, 1),
        xycoords=("data", "axes fraction"),
        xytext=(2, -2),
        textcoords="offset points",
        rotation=90,
        va="top",
        color=MUTED,
        fontsize=7,
    )
    if mark.end is not None:
        axes.axvline(mark.end, color=MUTED, linewidth=0.8, linestyle=(0, (1, 3)))


def _fit(axes: Axes, chart: Chart) -> None:
    """Make the axes begin at zero, and show all rows."""
    if chart.rows:
        axes.set_yticks(range(len(chart.rows)), chart.rows)
        axes.set_ylim(len(chart.rows) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.grid(visible=True, axis="x")
    elif not chart.log_y:
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))


def _tick(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def _draw(axes: Axes, line: Line) -> None:
    look = line.look
    colour = COLOURS[look % len(COLOURS)]
    # After six lines the colours repeat, with other strokes and markers.
    stroke = STROKES[(look + look // len(COLOURS)) % len(STROKES)]
    marker = MARKERS[(look + look // len(COLOURS)) % len(MARKERS)]
    if line.kind == "dots":
        axes.errorbar(
            line.x, line.y, xerr=line.half, color=colour, fmt=marker, capsize=2.5, label=line.name
        )
    elif line.kind == "points":
        axes.errorbar(
            line.x,
            line.y,
            yerr=line.half,
            color=colour,
            linestyle=stroke,
            marker=marker,
            markersize=4.5,
            linewidth=1.2,
            capsize=2.5,
            label=line.name,
        )
    else:
        steps = "steps-post" if line.kind == "step" else "default"
        axes.plot(
            line.x,
            line.y,
            color=colour,
            linestyle=stroke,
            linewidth=1.3,
            drawstyle=steps,
            label=line.name,
        )
