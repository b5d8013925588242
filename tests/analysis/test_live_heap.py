"""Tests of the time until a heap is full."""

import math

import pytest

from racetrack.analysis.live_heap import LiveHeap, full_after_min


@pytest.mark.parametrize(
    ("early", "late", "size_gib", "per_s", "minutes"),
    [
        # A million events take 0.1 GiB, and 1,000/s are 60,000 a minute.
        (LiveHeap(0, 0.0), LiveHeap(1_000_000, 0.1), 0.6, 1_000, 100),
        (LiveHeap(500_000, 0.3), LiveHeap(1_500_000, 0.4), 0.6, 1_000, 50),
        (LiveHeap(0, 0.3), LiveHeap(1_000_000, 0.304), 0.6, 1_000, math.inf),
        (LiveHeap(0, 0.3), LiveHeap(1_000_000, 0.2), 0.6, 1_000, math.inf),
        (LiveHeap(0, 0.3), LiveHeap(1_000_000, 0.32), 0.6, 1_000, None),
        (LiveHeap(7, 0.3), LiveHeap(7, 0.4), 0.6, 1_000, None),
        (LiveHeap(0, 0.7), LiveHeap(1_000_000, 0.8), 0.6, 1_000, 0),
    ],
)
def test_a_heap_is_full_when_growth_has_filled_what_is_free(
    early: LiveHeap, late: LiveHeap, size_gib: float, per_s: float, minutes: float | None
) -> None:
    found = full_after_min(early, late, size_gib, per_s)
    assert found == (None if minutes is None else pytest.approx(minutes))
