"""Tests of recovery times, on series made by hand whose answer is known."""

from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import recovery, views
from racetrack.analysis.recovery import LagHistory
from racetrack.results.figures import FaultRecovery, Recovery
from racetrack.results.run import DoneFault, FaultLog, LoadLog

RATE_SET_MS, FAULT_MS = 0.0, 20_000.0
CALM_MS = 900.0


def series(*episodes: tuple[float, float, float], until_ms: float = 60_000.0) -> LagHistory:
    """Return one point per second: a calm lag, except in the episodes, which are (from_ms, to_ms,
    lag_ms)."""
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
    # A calm of six seconds ends the episode.
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


def test_a_lag_that_was_normal_only_after_the_load_was_paused_has_not_recovered(
    tmp_path: Path,
) -> None:
    write_spike(tmp_path)
    done = DoneFault(
        fault="kill:engine@10s",
        how="kill",
        services=("engine",),
        at_ms=PEAK_MS,
        until_ms=PEAK_MS + 5_000,
        restart_s=1.0,
        reload_s=None,
    )
    faults = FaultLog(from_ms=10_000, done=(done,))
    (in_time,) = recovery.recoveries(tmp_path, faults)
    (too_late,) = recovery.recoveries(tmp_path, faults, paused_ms=PEAK_END_MS + 5_000)
    assert in_time.events.after_s is not None and too_late.events.after_s is None


def test_purchases_wait_from_when_they_were_due(tmp_path: Path) -> None:
    # The topic has 1,000 rows from before the run. It gets no new row at 2 to 4 s, and the missing
    # ones at 5 and 6 s.
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
    assert recovery.is_over([FaultRecovery(fault="x", events=back)])
    assert not recovery.is_over([FaultRecovery(fault="x", events=back, purchases=not_back)])


def test_a_lag_of_unknown_length_before_a_fault_is_not_what_is_normal() -> None:
    found = recovery.recovery(series((0, 19_000, np.inf)), RATE_SET_MS, FAULT_MS, FAULT_MS + 3_000)
    assert (found.normal_ms, found.after_s) == (2_000, 0.0)


# A spike from the 20th to the 30th second, from 1,000/s to 5,000/s, on two partitions. The engine
# counts at most 2,000/s, every 100 ms.
PEAK_MS, PEAK_END_MS, BASE_PER_S, PEAK_PER_S, CAPACITY_PER_S = 20_000, 30_000, 1_000, 5_000, 2_000
BACK_S = (PEAK_PER_S - CAPACITY_PER_S) * 10 / (CAPACITY_PER_S - BASE_PER_S)  # after the peak


def write_spike(folder: Path, until_s: int = 90) -> LoadLog:
    """Write the curves of a run with this spike; return its load as in `run.json`."""
    rows, due, processed = ["at_ms,curve,partition,count"], 0.0, 0.0
    for at_ms in range(0, 1000 * until_s, 100):
        for partition in (0, 1):
            for name, count in (("due", due), ("handed_over", due), ("published", due)):
                rows.append(f"{at_ms},{name},{partition},{round(count / 2)}")
            rows.append(f"{at_ms},processed,{partition},{round(processed / 2)}")
        rate = PEAK_PER_S if PEAK_MS <= at_ms < PEAK_END_MS else BASE_PER_S
        processed = min(due, processed + CAPACITY_PER_S / 10)
        due += rate / 10
    (folder / "curves.csv").write_text("\n".join(rows) + "\n")
    return LoadLog(
        profile="spike 1k 5k 10s", from_ms=10_000, peak_from_ms=PEAK_MS, peak_until_ms=PEAK_END_MS
    )


def test_recovery_from_a_spike_counts_from_its_end_with_the_largest_backlog(
    tmp_path: Path,
) -> None:
    found = recovery.load_effect(tmp_path, write_spike(tmp_path))
    assert found.recovery and found.recovery.after_s
    # A lag of up to 2 s is normal. At the base rate, this is a backlog of 2 * BASE_PER_S.
    normal_s = BACK_S - 2 * BASE_PER_S / (CAPACITY_PER_S - BASE_PER_S)
    assert found.after_peak_s == pytest.approx(normal_s, abs=0.5)
    assert found.recovery.after_s == pytest.approx(10 + normal_s, abs=0.5)
    most = (PEAK_PER_S - CAPACITY_PER_S) * 10
    assert found.max_backlog_events == pytest.approx(most, rel=0.03)
    assert found.max_backlog_before_events == pytest.approx(
        2 * BASE_PER_S / 10, abs=BASE_PER_S / 10
    )
    # The peak's last event waits longest.
    worst_s = 10 * PEAK_PER_S / CAPACITY_PER_S - 10
    assert found.recovery.worst_ms == pytest.approx(1000 * worst_s, rel=0.03)


def test_what_is_not_back_when_the_load_is_paused_never_was(tmp_path: Path) -> None:
    found = recovery.load_effect(tmp_path, write_spike(tmp_path, until_s=45))
    assert found.recovery
    assert (found.after_peak_s, found.recovery.after_s) == (None, None)


def test_the_backlog_is_that_until_the_load_was_paused(tmp_path: Path) -> None:
    load = write_spike(tmp_path)
    early = recovery.load_effect(tmp_path, load, paused_ms=25_000)
    assert early.max_backlog_events == pytest.approx((PEAK_PER_S - CAPACITY_PER_S) * 5, rel=0.05)


def test_without_a_peak_only_the_backlog_is_found(tmp_path: Path) -> None:
    load = write_spike(tmp_path).model_copy(update={"peak_from_ms": None, "peak_until_ms": None})
    found = recovery.load_effect(tmp_path, load)
    assert found.max_backlog_events > 20_000
    assert (found.recovery, found.after_peak_s, found.max_backlog_before_events) == (
        None,
        None,
        None,
    )
