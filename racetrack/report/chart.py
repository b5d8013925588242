"""What a chart is: lines with their values, before anything is drawn."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A panel is three times as many pixels wide. Two points a column still show every peak, and a page
# of many runs stays small.
COLUMNS = 100


@dataclass(frozen=True, eq=False)
class Line:
    """One line: x and y of one length. `look` picks colour, marker and stroke, the same for the
    same thing in every chart of a kind. `half` are half intervals (NaN where there is none)."""

    name: str
    x: Floats
    y: Floats
    look: int
    kind: Literal["line", "step", "points", "foreign"] = "line"
    half: Floats | None = None


@dataclass(frozen=True)
class Mark:
    """Something that happened from one x to another, `end` is None where it never ended."""

    name: str
    begin: float
    end: float | None


@dataclass(frozen=True, eq=False)
class Chart:
    """One pair of axes. `name` is the stem of its files, `x_form` and `y_form` format values,
    `x_unit` and `y_unit` follow them; `band` shades a span of x (the judged window), `marks` are
    what was done to the stack on purpose; `meaning` defines what is drawn and `note` says what of
    it was left out."""

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
    meaning: str = ""
    note: str = ""


def thinned(x: Floats, y: Floats, columns: int = COLUMNS) -> tuple[Floats, Floats]:
    """Of the points in each column the lowest and the highest, in order of x.

    So no peak is lost and no value is made up. A line that fits is returned as it is.
    """
    if len(x) <= 2 * columns:
        return x, y
    column = np.minimum((x - x[0]) / (x[-1] - x[0]) * columns, columns - 1).astype(np.intp)
    order = np.lexsort((y, column))
    starts = np.flatnonzero(np.diff(column[order], prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    kept = np.union1d(order[starts], order[ends])
    return x[kept], y[kept]
