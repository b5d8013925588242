"""Tests of recovery times, on series made by hand whose answer is known."""

from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import recovery, views
from racetrack.analysis.recovery import LagHistory
from racetrack.results.figures import FaultRecovery, Recovery
from racetrack.results.run import DoneFault, FaultLog, LoadLog

FAULT_MS, CALM_MS = 20_000.0, 900.0
INSERTS = "at_ms,due,refused,done,captured,sent_ms\n"


def series(*episodes: tuple[float, float, float]) -> LagHistory:
    """Return one point per second: a calm lag, except in the episodes, which are (from_ms, to_ms,
    lag_ms)."""
    at_ms = np.arange(0.0, 60_001.0, 1000.0)
    lag_ms = np.full(len(at_ms), CALM_MS)
    for from_ms, to_ms, value in episodes:
        lag_ms[(at_ms >= from_ms) & (at_ms < to_ms)] = value
    return LagHistory(at_ms, lag_ms)


def of(
    *episodes: tuple[float, float, float], away_s: float = 0, rate_set_ms: float = 0
) -> Recovery:
    """Return the recovery from a fault whose service is away for `away_s`."""
    until_ms = FAULT_MS + 1000 * away_s
    return recovery.recovery(series(*episodes), rate_set_ms, FAULT_MS, until_ms)


@pytest.mark.parametrize(
    ("episodes", "away_s", "after_s"),
    [
        ([], 3, 0.0),
        ([(22_000, 31_000, 8_000)], 5, 11.0),
        # A calm of less than five seconds is none; one of six ends the episode.
        ([(22_000, 25_000, 8_000), (29_000, 33_000, 8_000)], 0, 13.0),
        ([(22_000, 25_000, 8_000), (32_000, 33_000, 8_000)], 0, 5.0),
        ([(40_000, 45_000, 9_000)], 18, 25.0),  # it comes back in the end only
        ([(22_000, 61_000, 8_000)], 0, None),
        ([(22_000, 57_000, 8_000)], 0, None),  # the calm is cut off
    ],
)
def test_lag_is_back_when_it_is_normal_for_five_seconds_after_the_service_is(
    episodes: list[tuple[float, float, float]], away_s: float, after_s: float | None
) -> None:
    found = of(*episodes, away_s=away_s)
    assert found.after_s == (None if after_s is None else pytest.approx(after_s))
    assert found.worst_ms == max([CALM_MS, *(lag_ms for _, _, lag_ms in episodes)])


def test_what_was_normal_before_is_normal_after() -> None:
    assert of().normal_ms == 2_000
    slow = of((0, 61_000, 6_000))
    assert (slow.normal_ms, slow.after_s) == (6_000, 0.0)
    # What was before the rate was set is not normal, nor is a lag of unknown length.
    assert of((0, 14_000, 50_000), rate_set_ms=15_000).normal_ms == 2_000
    unknown = of((0, 19_000, np.inf), away_s=3)
    assert (unknown.normal_ms, unknown.after_s) == (2_000, 0.0)


def test_a_lag_without_end_is_none_in_the_record() -> None:
    found = of((21_000, 25_000, np.inf), away_s=4)
    assert (found.worst_ms, found.after_s) == (None, 5.0)


def test_a_lag_that_is_normal_only_once_the_load_is_paused_has_not_recovered(
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
    rows = [f"{1000 * s},{due[s]},0,{due[s]},{captured[s]},0\n" for s in range(len(due))]
    (tmp_path / views.INSERTS_FILE).write_text("".join([INSERTS, *rows]))
    found = recovery.purchases(tmp_path)
    assert found
    assert list(found.lag_ms) == [0, 0, 0, 1000, 2000, 1000, 0]


def test_files_of_a_run_that_goes_on_are_read_up_to_their_last_whole_line(tmp_path: Path) -> None:
    rows = "1000,1,0,1,1001,0\n2000,3,1,2,1002,0\n3000,9,1"
    (tmp_path / views.INSERTS_FILE).write_text(INSERTS + rows)
    found = recovery.purchases(tmp_path)
    assert found
    assert list(found.lag_ms) == [0, 0]
    assert recovery.purchases(tmp_path / "elsewhere") is None


def test_it_is_over_when_every_lag_is_back() -> None:
    back, not_back = (Recovery(normal_ms=1, worst_ms=1, after_s=s) for s in (1.0, None))
    assert recovery.is_over([FaultRecovery(fault="x", events=back)])
    assert not recovery.is_over([FaultRecovery(fault="x", events=back, purchases=not_back)])


# A spike from the 20th to the 30th second, from 1,000/s to 5,000/s, on two partitions. The engine
# counts at most 2,000/s, every 100 ms.
PEAK_MS, PEAK_END_MS, BASE_PER_S, PEAK_PER_S, CAPACITY_PER_S = 20_000, 30_000, 1_000, 5_000, 2_000
BACK_S = (PEAK_PER_S - CAPACITY_PER_S) * 10 / (CAPACITY_PER_S - BASE_PER_S)  # after the peak


def write_spike(folder: Path, until_s: int = 90) -> LoadLog:
    """Write the curves of a run with this spike; return its load as in `run.json`."""
    rows, due, processed = ["at_ms,curve,partition,count"], 0.0, 0.0
    for at_ms in range(0, 1000 * until_s, 100):
        for partition in (0, 1):
            counts = {"due": due, "handed_over": due, "published": due, "processed": processed}
            rows += [f"{at_ms},{name},{partition},{n / 2:.0f}" for name, n in counts.items()]
        rate = PEAK_PER_S if PEAK_MS <= at_ms < PEAK_END_MS else BASE_PER_S
        processed = min(due, processed + CAPACITY_PER_S / 10)
        due += rate / 10
    (folder / "curves.csv").write_text("\n".join(rows) + "\n")
    return LoadLog(
        profile="spike 1k 5k 10s", from_ms=10_000, peak_from_ms=PEAK_MS, peak_until_ms=PEAK_END_MS
    )


def test_recovery_from_a_spike_counts_from_its_end(tmp_path: Path) -> None:
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


def test_only_what_was_before_the_load_was_paused_counts(tmp_path: Path) -> None:
    load = write_spike(tmp_path, until_s=45)
    found = recovery.load_effect(tmp_path, load)
    assert found.recovery
    assert (found.after_peak_s, found.recovery.after_s) == (None, None)
    early = recovery.load_effect(tmp_path, load, paused_ms=25_000)
    assert early.max_backlog_events == pytest.approx((PEAK_PER_S - CAPACITY_PER_S) * 5, rel=0.05)


def test_without_a_peak_only_the_backlog_is_found(tmp_path: Path) -> None:
    load = write_spike(tmp_path).model_copy(update={"peak_from_ms": None, "peak_until_ms": None})
    found = recovery.load_effect(tmp_path, load)
    assert found.max_backlog_events > 20_000
    of_peak = (found.recovery, found.after_peak_s, found.max_backlog_before_events)
    assert of_peak == (None, None, None)
