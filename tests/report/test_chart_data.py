"""A test that charts show only measured points, and every peak."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from racetrack.report.chart_data import COLUMNS, thinned


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinning_keeps_measured_points_and_both_extremes(values: list[float]) -> None:
    y = np.array(values)
    x = np.arange(len(y), dtype=np.float64)
    kept_x, kept_y = thinned(x, y)
    assert len(kept_x) <= 2 * COLUMNS
    assert np.all(np.diff(kept_x) > 0)
    assert np.array_equal(y[kept_x.astype(int)], kept_y)
    assert (kept_y.min(), kept_y.max()) == (y.min(), y.max())
