"""Tests that charts show only measured points, and every peak."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from racetrack.report.chart_data import COLUMNS, Chart, Line, for_page, thinned

CHART = Chart(
    title="A & B",
    x_title="s",
    y_title="ms",
    lines=(
        Line("first", np.arange(5.0), np.array([0.0, 1.0, 4.0, 9.0, 16.0]), 0),
        Line("second", np.arange(5.0), np.full(5, 3.0), 1, "points", np.full(5, 0.5)),
    ),
    x_form="{:.0f}",
    x_unit=" s",
    y_form="{:.1f}",
    y_unit=" ms",
)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinning_keeps_measured_points_and_both_extremes(values: list[float]) -> None:
    y = np.array(values)
    x = np.arange(len(y), dtype=np.float64)
    kept_x, kept_y = thinned(x, y)
    assert len(kept_x) <= 2 * COLUMNS
    assert np.all(np.diff(kept_x) > 0)
    assert np.array_equal(y[kept_x.astype(int)], kept_y)
    assert (kept_y.min(), kept_y.max()) == (y.min(), y.max())


def test_the_page_gets_the_points_with_their_intervals() -> None:
    found = for_page(CHART)
    first, second = found["lines"]
    assert first["x"] == [0, 1, 2, 3, 4] and first["y"] == [0, 1, 4, 9, 16]
    assert second["low"] == [2.5] * 5 and second["high"] == [3.5] * 5
    assert (found["x_decimals"], found["y_decimals"]) == (0, 1)
    assert (found["x_unit"], found["y_unit"]) == (" s", " ms")
