"""A test that charts show only measured points, and every peak."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from racetrack.analysis.claims import estimates
from racetrack.analysis.table import Load, Place, Row
from racetrack.metrics import CPU_PER_MILLION
from racetrack.report.chart_data import COLUMNS, thinned
from racetrack.report.charts import comparisons


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinning_keeps_measured_points_and_both_extremes(values: list[float]) -> None:
    y = np.array(values)
    x = np.arange(len(y), dtype=np.float64)
    kept_x, kept_y = thinned(x, y)
    assert len(kept_x) <= 2 * COLUMNS
    assert np.all(np.diff(kept_x) > 0)
    assert np.array_equal(y[kept_x.astype(int)], kept_y)
    assert (kept_y.min(), kept_y.max()) == (y.min(), y.max())


def test_bars_have_the_ends_of_asymmetric_intervals_and_settings_vary_within_an_engine() -> None:
    place = Place("shop", "native", "a machine")
    rows = [
        Row(
            engine,
            f"{engine}{setting}",
            place,
            Load(5_000),
            "5,000/s",
            {CPU_PER_MILLION.key: value, "view_lag_p99_ms": 9.0},
            repeat=repeat,
            config={"cycle_ms": setting, "heap": {"dh": "7", "pg": "8"}[engine]},
        )
        for engine, setting in (("dh", "1"), ("dh", "2"), ("pg", "1"))
        for repeat, value in enumerate((90.0, 100.0, 112.0), start=1)
    ]
    known = estimates(rows)
    found = {chart.title: chart for chart in comparisons(rows, known)}
    assert not [title for title in found if "heap" in title]
    (title,) = (title for title in found if "cycle_ms" in title and "cost" in title.lower())
    (line,) = found[title].lines
    estimate = known["dh1", CPU_PER_MILLION.key, Load(5_000)]
    assert line.low is not None and line.high is not None
    assert (line.low[0], line.high[0]) == (estimate.low, estimate.high)
    assert line.y[0] - line.low[0] < line.high[0] - line.y[0]
