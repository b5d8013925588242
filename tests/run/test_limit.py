"""Tests of the plan `limit` on a fake engine and a fake clock: capacity, sustained rates, failures,
and resumption."""

from pathlib import Path

import pytest

from racetrack import terminal
from racetrack.analysis.table import Row, read
from racetrack.plan.model import PLANS
from racetrack.results.run import SATURATION, SEARCH
from tests.run.fluid_session import FluidSession
from tests.run.test_runner import CAPACITY, SWIFT, Fakes, fakes, one_at

LIMIT = (PLANS / "limit.toml").read_text()
WARM_UP_ENDS_S = 170  # at the latest
__all__ = ["fakes"]  # a fixture


def begin(fakes: Fakes) -> Path:
    return fakes.begin(LIMIT, (SWIFT,))


def found(folder: Path, window: str) -> list[Row]:
    return [row for row in read([folder]).rows if row.window == window]


def test_capacity_and_sustained_rates_are_found_on_two_stacks(fakes: Fakes) -> None:
    folder = begin(fakes)
    record = fakes.carry_out(folder)
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
    def gives_out(session: FluidSession) -> None:
        session.hands_over_per_s = 15_000.0

    fakes.change = gives_out
    folder = begin(fakes)
    record = fakes.carry_out(folder)
    (row,) = found(folder, SATURATION)
    assert "capacity_per_s" in row.at_least and "only 15,0" in row.remark
    assert "its capacity is unknown" in (record.runs[1].outcome or "")
    assert len(fakes.sessions) == 1


@pytest.mark.parametrize("first_fails", [True, False])
def test_a_stack_that_fails_ends_the_search_but_leaves_a_capacity(
    fakes: Fakes, first_fails: bool
) -> None:
    def dies(session: FluidSession) -> None:
        if first_fails or fakes.sessions:
            session.dies_at_s = 20 if first_fails else WARM_UP_ENDS_S

    fakes.change = dies
    folder = begin(fakes)
    first, second = (run.outcome or "" for run in fakes.carry_out(folder).runs)
    if first_fails:
        assert first == "the engine ended: out of memory"
        assert "its capacity is unknown" in second
        return
    assert (first, second) == ("ok", "the engine ended: out of memory")
    known, failed = found(folder, SATURATION)
    assert known.values["capacity_per_s"] == pytest.approx(CAPACITY[SWIFT], rel=0.03)
    assert "out of memory" in failed.outcome and not failed.values


@pytest.mark.parametrize(("stack", "at_s"), [(1, 60), (2, 60), (2, 200), (2, 300)])
def test_a_search_that_is_resumed_finds_the_same(fakes: Fakes, stack: int, at_s: float) -> None:
    whole = begin(fakes)
    fakes.carry_out(whole)
    fakes.sessions.clear()
    folder = begin(fakes)
    fakes.change = one_at(stack - 1, interrupted_at_s=at_s)
    with pytest.raises(terminal.Interrupted):
        fakes.carry_out(folder)
    fakes.change = lambda _: None
    record = fakes.carry_out(folder)
    assert record.runs[-1].outcome == "ok" and len(fakes.sessions) == 3
    before, after = (found(of, SEARCH)[0] for of in (whole, folder))
    assert after.values == pytest.approx(before.values, rel=0.06)
    windows = [row.window for row in read([folder]).rows]
    assert len(windows) == len(set(windows)) + 1  # both stacks have one at saturation


def test_without_time_the_rates_are_lower_bounds(fakes: Fakes) -> None:
    folder = fakes.begin(LIMIT.replace('within = "15m"', 'within = "9m"'), (SWIFT,))
    fakes.carry_out(folder)
    (search,) = found(folder, SEARCH)
    assert search.outcome == "ok" and search.at_least
    assert "no time for more trials within 9 min" in search.remark


STACKS = """
phase = [
    { warm_up = "20s", at = "saturation" },
    { saturate = "20s", hold = "20s", batch = "10s" },
    { window = "10s", settle = "3s", loads = ["50%"] },
    { warm_up = "20s", at = "saturation", fresh = true },
    { saturate = "20s", hold = "20s", batch = "10s" },
]
"""


def test_stacks_of_one_run_are_one_variant_and_other_durations_another(fakes: Fakes) -> None:
    folder = fakes.begin(STACKS, (SWIFT,))
    fakes.carry_out(folder)
    assert {row.variant for row in read([folder]).rows} == {SWIFT}
    longer = fakes.begin(STACKS.replace('"10s"', '"20s"'), (SWIFT,))
    fakes.carry_out(longer)
    assert len({row.variant for row in read([folder, longer]).rows}) == 2
