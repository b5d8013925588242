"""What is drawn are measured points, and no peak is lost."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.report.draw import COLOURS, COLUMNS, VARIABLES, Chart, Line, drawn, inline, thinned

CHART = Chart(
    name="x",
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


def test_a_spike_of_one_sample_is_seen() -> None:
    y = np.zeros(100_000)
    y[54_321] = 7.0
    assert 7.0 in thinned(np.arange(100_000.0), y)[1]


def test_readings_lie_on_the_drawn_line() -> None:
    svg, png, readings = drawn(CHART)
    first, second = (
        [point.split("|") for point in line["points"].split(";")] for line in readings["lines"]
    )
    assert [point[1:] for point in first][:2] == [["0", "0.0"], ["1", "1.0"]]
    assert second[0][2] == "3.0 ± 0.5"
    assert readings["units"] == [" s", " ms"]
    path = re.search(rf'<path d="([^"]*)"[^>]*stroke: {COLOURS[0]}', svg)
    assert path
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", path[1])]
    at = [float(point[0]) for point in first]
    assert numbers[::2] == pytest.approx(at, abs=0.15)
    assert png.startswith(b"\x89PNG")


def test_in_the_page_all_colours_are_the_themes() -> None:
    svg, _, _ = drawn(CHART)
    told = inline(svg, "p1", CHART.title)
    assert ET.fromstring(told).tag == "svg"  # noqa: S314
    assert not any(colour in told for colour in VARIABLES)
    assert re.findall(r"#[0-9a-f]{6}\b", told) == []
    assert "DejaVu" not in told and "http" not in told
