"""When lag was back to normal: series made by hand, whose answer is known."""

from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import recovery, views
from racetrack.analysis.recovery import LagHistory
from racetrack.results.figures import FaultRecovery, Recovery

RATE_SET_MS, FAULT_MS = 0.0, 20_000.0
CALM_MS = 900.0


def series(*episodes: tuple[float, float, float], until_ms: float = 60_000.0) -> LagHistory:
    """A point a second with a calm lag, but for episodes (from_ms, to_ms without it, lag_ms)."""
    at_ms = np.arange(0.0, until_ms + 1, 1000.0)
    lag_ms = np.full(len(at_ms), CALM_MS)
    for from_ms, to_ms, value in episodes:
        lag_ms[(at_ms >= from_ms) & (at_ms < to_ms)] = value
    return LagHistory(at_ms, lag_ms)


def after_s(of: LagHistory, until_ms: float = FAULT_MS) -> float | None:
    return recovery.recovery(of, RATE_SET_MS, FAULT_MS, until_ms).after_s


def test_lag_that_never_left_normal_is_back_at_once() -> None:
    found = recovery.recovery(series(), RATE_SET_MS, FAULT_MS, FAULT_MS + 3000)
    assert (found.normal_ms, found.worst_ms, found.after_s) == (2000.0, CALM_MS, 0.0)


def test_an_episode_ends_at_the_first_normal_point() -> None:
    found = recovery.recovery(
        series((22_000, 31_000, 8_000)), RATE_SET_MS, FAULT_MS, FAULT_MS + 5_000
    )
    assert found.after_s == pytest.approx(11.0)
    assert found.worst_ms == 8_000


def test_a_calm_of_less_than_five_seconds_is_none() -> None:
    assert after_s(series((22_000, 25_000, 8_000), (29_000, 33_000, 8_000))) == pytest.approx(13.0)
    # Six seconds are one.
    assert after_s(series((22_000, 25_000, 8_000), (32_000, 33_000, 8_000))) == pytest.approx(5.0)


def test_a_service_that_is_still_away_has_not_recovered() -> None:
    quiet_then_late = series((40_000, 45_000, 9_000))
    assert after_s(quiet_then_late, until_ms=38_000) == pytest.approx(25.0)


def test_lag_that_stays_high_never_came_back_and_neither_did_a_calm_that_was_cut_off() -> None:
    assert after_s(series((22_000, 61_000, 8_000))) is None
    assert after_s(series((22_000, 57_000, 8_000))) is None


def test_what_was_normal_before_is_normal_after() -> None:
    slow = series((0, 61_000, 6_000))
    assert recovery.recovery(slow, RATE_SET_MS, FAULT_MS, FAULT_MS).normal_ms == 6_000
    assert after_s(slow) == 0.0


def test_what_was_before_the_rate_was_set_is_not_normal() -> None:
    start_up = series((0, 14_000, 50_000))
    assert recovery.recovery(start_up, 15_000, FAULT_MS, FAULT_MS).normal_ms == 2000


def test_a_lag_without_end_is_none_in_the_record() -> None:
    of = series((21_000, 25_000, np.inf))
    found = recovery.recovery(of, RATE_SET_MS, FAULT_MS, 24_000)
    assert (found.worst_ms, found.after_s) == (None, 5.0)


def test_purchases_wait_from_when_they_were_due(tmp_path: Path) -> None:
    # 1,000 are from before the run; the topic stands still at the third row and is up at the last.
    due, captured = [0, 1, 2, 3, 4, 5, 5], [1000, 1001, 1001, 1001, 1001, 1003, 1005]
    rows = [f"{1000 * s},{due[s]},0,{due[s]},{captured[s]},0" for s in range(len(due))]
    header = "at_ms,due,refused,done,captured,sent_ms"
    (tmp_path / views.INSERTS_FILE).write_text("\n".join([header, *rows]) + "\n")
    found = recovery.purchases(tmp_path)
    assert found
    assert list(found.lag_ms) == [0, 0, 0, 1000, 2000, 1000, 0]


def test_the_files_of_a_run_that_goes_on_are_read_up_to_their_last_whole_line(
    tmp_path: Path,
) -> None:
    text = "at_ms,due,refused,done,captured,sent_ms\n1000,1,0,1,1001,0\n2000,3,1,2,1002,0\n3000,9,1"
    (tmp_path / views.INSERTS_FILE).write_text(text)
    found = recovery.purchases(tmp_path)
    assert found
    assert list(found.lag_ms) == [0, 0]
    assert recovery.purchases(tmp_path / "elsewhere") is None


def test_it_is_over_when_every_lag_is_back() -> None:
    back, not_back = (Recovery(normal_ms=1, worst_ms=1, after_s=of) for of in (1.0, None))
    assert recovery.is_over([FaultRecovery(fault="x", pageviews=back)])
    assert not recovery.is_over([FaultRecovery(fault="x", pageviews=back, purchases=not_back)])


def test_a_lag_of_unknown_length_before_a_fault_is_not_what_is_normal() -> None:
    found = recovery.recovery(series((0, 19_000, np.inf)), RATE_SET_MS, FAULT_MS, FAULT_MS + 3_000)
    assert (found.normal_ms, found.after_s) == (2_000, 0.0)
