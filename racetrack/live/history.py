"""History of a session's figures in bounded memory. Old rows are thinned to their extremes, so that
peaks remain."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

ROWS = 3_000
BUCKET, LEAVING = 4, 8  # numbers of rows that `extremes` reduces to two
Values = Mapping[str, float | None]
Row = tuple[int, Values]


class History:
    """Rows of time (epoch milliseconds) and values by series. The newest half of the rows is kept
    as it was added; older rows are thinned evenly. Not thread-safe."""

    def __init__(self, rows: int = ROWS) -> None:
        self._half = rows // 2
        self._recent: deque[Row] = deque()
        self._leaving: list[Row] = []  # rows of the unfinished bucket, thinned at times
        self._left = 0  # number of rows added to that bucket
        self._old: list[Row] = []
        self._bucket = BUCKET  # number of added rows that a finished bucket thins to two

    def add(self, at_ms: int, values: Values) -> None:
        """Add a row."""
        self._recent.append((at_ms, values))
        if len(self._recent) <= self._half:
            return
        self._leaving.append(self._recent.popleft())
        self._left += 1
        if self._left == self._bucket:
            self._old += extremes(self._leaving)
            self._leaving, self._left = [], 0
        elif len(self._leaving) == LEAVING:
            self._leaving = extremes(self._leaving)
        if len(self._old) >= self._half - LEAVING:
            buckets = [self._old[at : at + BUCKET] for at in range(0, len(self._old), BUCKET)]
            self._old = [row for bucket in buckets for row in extremes(bucket)]
            self._bucket *= BUCKET // 2

    @property
    def last_ms(self) -> int:
        """Time of the newest row; 0 if there is none."""
        return self._recent[-1][0] if self._recent else 0

    def as_columns(self) -> dict[str, Any]:
        """Return the rows as `{"at_ms": […], "values": {series: […]}}`."""
        rows = [*self._old, *self._leaving, *self._recent]
        names = dict.fromkeys(name for _, values in rows for name in values)
        return {
            "at_ms": [at_ms for at_ms, _ in rows],
            "values": {name: [values.get(name) for _, values in rows] for name in names},
        }


def extremes(rows: Sequence[Row]) -> list[Row]:
    """Return two rows, at the first and the last time of these rows: for each series its least and
    its greatest value, in the order in which they occurred."""
    first: dict[str, float | None] = {}
    last: dict[str, float | None] = {}
    for name in dict.fromkeys(name for _, values in rows for name in values):
        known = [
            (value, place)
            for place, (_, values) in enumerate(rows)
            if (value := values.get(name)) is not None
        ]
        if known:
            ends = sorted((min(known), max(known)), key=lambda pair: pair[1])
            first[name], last[name] = ends[0][0], ends[1][0]
    return [(rows[0][0], first), (rows[-1][0], last)]
