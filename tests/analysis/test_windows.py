"""Tests of the figures of windows: CPU use over the rate."""

import pytest

from racetrack.analysis.windows import interpolated


@pytest.mark.parametrize(
    ("per_s", "used_pct"),
    [
        (1_000, 10.0),
        (3_000, 15.0),
        (5_000, 20.0),
        # A little beyond the rates that were measured, but not far.
        (801, 10.0),
        (6_249, 20.0),
        (799, None),
        (6_251, None),
    ],
)
def test_cpu_use_is_known_between_the_measured_rates(per_s: float, used_pct: float | None) -> None:
    assert interpolated([(5_000, 20.0), (1_000, 10.0)], per_s) == used_pct
    assert interpolated([], per_s) is None
