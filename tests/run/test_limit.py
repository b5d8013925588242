"""Tests of the plan `limit` on a fake engine and a fake clock: capacity, sustained rates, failures,
and resumption."""

from pathlib import Path

import pytest

from racetrack.analysis.table import Row, read
from racetrack.plan.model import PLANS
from racetrack.results.run import SATURATION, SEARCH
from tests.run.test_runner import CAPACITY, SATURATE, SATURATED, SWIFT, Fakes, fakes, phases

LIMIT = (PLANS / "limit.toml").read_text()
WARM_UP_ENDS_S = 170  # at the latest
__all__ = ["fakes"]  # a fixture


def found(folder: Path, window: str) -> list[Row]:
    return [row for row in read([folder]).rows if row.window == window]


@pytest.mark.slow
def test_capacity_and_sustained_rates_are_found_on_two_stacks(fakes: Fakes) -> None:
    folder, record = fakes.run(LIMIT, (SWIFT,))
    assert [run.outcome for run in record.runs] == ["ok", "ok"]
    capacities = [row.values["capacity_per_s"] for row in found(folder, SATURATION)]
    assert len(capacities) == len(fakes.sessions) == 2
    assert capacities == pytest.approx([CAPACITY[SWIFT]] * 2, rel=0.02)
    (search,) = found(folder, SEARCH)
    for key in ("sustained_1s_per_s", "sustained_5s_per_s"):
        assert search.values[key] == pytest.approx(0.95 * CAPACITY[SWIFT], rel=0.06)
    assert search.at_least == frozenset()
    trials = [row for row in read([folder]).rows if row.load]
    assert all(row.share and row.load and row.load.per_s > 10_000 for row in trials)
    assert 8 < record.minutes <= 17
    assert all(session.stopped for session in fakes.sessions)
    # Rates are tried before the second stack is saturated again.
    names = [row.window for row in fakes.rows]
    assert names[0] == names[-1] == SATURATION and names[-2] == SEARCH
    assert all("% of capacity" in name for name in names[1:-2]) and names[1:-2]


def test_a_generator_that_gives_out_first_is_named_and_nothing_is_searched(fakes: Fakes) -> None:
    folder, record = fakes.run(LIMIT, (SWIFT,), hands_over_per_s=15_000.0)
    (row,) = found(folder, SATURATION)
    assert "capacity_per_s" in row.at_least and "only 15,0" in row.remark
    assert "its capacity is unknown" in (record.runs[1].outcome or "")
    assert len(fakes.sessions) == 1


def test_a_first_stack_that_fails_leaves_no_capacity(fakes: Fakes) -> None:
    _, record = fakes.run(LIMIT, (SWIFT,), of=0, dies_at_s=20)
    first, second = (run.outcome or "" for run in record.runs)
    assert first == "the engine ended: out of memory"
    assert "its capacity is unknown" in second


@pytest.mark.slow
def test_a_second_stack_that_fails_ends_the_search_but_leaves_a_capacity(fakes: Fakes) -> None:
    folder, record = fakes.run(LIMIT, (SWIFT,), of=1, dies_at_s=WARM_UP_ENDS_S)
    assert [run.outcome for run in record.runs] == ["ok", "the engine ended: out of memory"]
    known, failed = found(folder, SATURATION)
    assert known.values["capacity_per_s"] == pytest.approx(CAPACITY[SWIFT], rel=0.03)
    assert "out of memory" in failed.outcome and not failed.values


@pytest.mark.slow
@pytest.mark.parametrize(("stack", "at_s"), [(1, 60), (2, 300)])
def test_a_search_that_is_resumed_finds_the_same(fakes: Fakes, stack: int, at_s: float) -> None:
    whole, _ = fakes.run(LIMIT, (SWIFT,))
    fakes.sessions.clear()
    folder = fakes.begin(LIMIT, (SWIFT,))
    fakes.interrupt(folder, stack - 1, at_s)
    record = fakes.resume(folder)
    assert record.runs[-1].outcome == "ok" and len(fakes.sessions) == 3
    before, after = (found(of, SEARCH)[0] for of in (whole, folder))
    assert after.values == pytest.approx(before.values, rel=0.06)
    windows = [row.window for row in read([folder]).rows]
    assert len(windows) == len(set(windows)) + 1  # both stacks have one at saturation


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heap", "stacks", "share", "is_bound"),
    [("4g", 1, 0.95, False), ("720m", 2, 0.95, False), ("300m", 3, 0.3, True)],
)
def test_trials_whose_events_would_fill_the_heap_are_made_on_fresh_stacks(
    fakes: Fakes, heap: str, stacks: int, share: float, is_bound: bool
) -> None:
    # At saturation 2 million events of 163 bytes are offered, in a trial at 95 % 3 million.
    text = phases(SATURATED, SATURATE, '{ search = ["5s"], within = "60m" }')
    folder, _ = fakes.run(text, (f"{SWIFT}[DEEPHAVEN_HEAP={heap}]",))
    (search,) = found(folder, SEARCH)
    assert len(fakes.sessions) == stacks
    assert search.values["sustained_5s_per_s"] >= share * 0.94 * CAPACITY[SWIFT]
    assert bool(search.at_least) == is_bound


@pytest.mark.slow
def test_without_time_the_rates_are_lower_bounds(fakes: Fakes) -> None:
    folder, _ = fakes.run(LIMIT.replace('within = "15m"', 'within = "9m"'), (SWIFT,))
    (search,) = found(folder, SEARCH)
    assert search.outcome == "ok" and search.at_least
    assert "no time for more trials within 9 min" in search.remark
