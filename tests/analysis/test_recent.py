"""Tests of a session's recent counts: current rates and lag, in bounded memory."""

import pytest

from racetrack.analysis.curves import KEPT_MS, TRIM_MS, RecentCurve, RecentCurves

START_MS = 1_700_000_000_000


def steady(counted_until_s: float = 9.0) -> RecentCurves:
    """Return the counts of two partitions with 100/s each. The engine counted the events of the
    first `counted_until_s` seconds."""
    recent = RecentCurves()
    for second in range(11):
        at_ms = START_MS + 1000 * second
        counts = [(0, 100 * second), (1, 100 * second)]
        for name in ("due", "handed_over", "published"):
            recent.add("", at_ms, name, counts)
        if second <= counted_until_s:
            recent.add("dh", at_ms, "processed", counts)
    return recent


def test_lag_is_the_age_of_the_oldest_event_that_is_not_counted() -> None:
    recent = steady()
    now_ms = START_MS + 10_000
    assert recent.lag_ms("dh", now_ms) == pytest.approx(1_000 - 10)
    assert recent.lag_ms("dh", now_ms + 500) == pytest.approx(1_500 - 10)
    assert recent.backlog("dh") == 200
    assert recent.lag_ms("pg", now_ms) == pytest.approx(10_000 - 10)
    recent.forget("dh")  # an engine that was killed has counted nothing
    assert recent.backlog("dh") == 2_000
    assert steady(counted_until_s=10).lag_ms("dh", now_ms + 1_000) == 0.0


def test_without_rows_nothing_is_known() -> None:
    recent = RecentCurves()
    assert recent.lag_ms("dh", START_MS) is None
    assert recent.backlog("dh") is None
    assert recent.rate_per_s("due") is None
    assert recent.curves("dh", START_MS) is None


def test_rates_are_sums_over_the_partitions() -> None:
    recent = steady()
    assert recent.rate_per_s("due") == pytest.approx(200)
    assert recent.rate_per_s("processed", "dh") == pytest.approx(200)
    assert recent.rate_per_s("processed", "pg") is None


def test_the_curves_of_a_segment_begin_with_the_row_before_it() -> None:
    found = steady().curves("dh", START_MS + 4_500)
    assert found
    assert found.partitions == (0, 1)
    assert found.due[0].at_ms[0] == START_MS + 4_000
    assert found.processed[1].count[-1] == 900


def test_old_rows_are_dropped_and_times_never_go_back() -> None:
    counts = RecentCurve()
    for at_ms in range(0, KEPT_MS + 3 * TRIM_MS, 1_000):
        counts.add(at_ms, at_ms)
    assert len(counts.at_ms) <= (KEPT_MS + TRIM_MS) / 1_000 + 1
    assert counts.time_of(0) == counts.at_ms[0]
    counts.add(8, at_ms + 1)
    assert list(counts.at_ms)[-2:] == [at_ms, at_ms]
