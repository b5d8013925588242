"""The search for the limit, on engines that are made up: it ends, near the truth, and honestly."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.analysis.verdict import Kind
from racetrack.bracket import MAX_SHIFTS, Bracket, climb, confirm

TOLERANCE = 0.05


def engine(limit: float) -> Callable[[int], Kind]:
    """Keeps up with rates up to `limit`, always decided."""
    return lambda rate: Kind.KEPT_UP if rate <= limit else Kind.FELL_BEHIND


@given(limit=st.integers(2, 10_000_000), start=st.integers(1, 100_000))
def test_the_climb_brackets_any_limit_to_the_tolerance(limit: int, start: int) -> None:
    seen: list[int] = []

    def observe(rate: int) -> Kind:
        seen.append(rate)
        return engine(limit)(rate)

    found = climb(observe, start, TOLERANCE)
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= limit < found.falls_behind
    assert found.falls_behind <= found.keeps_up * 1.05 + 1
    assert len(seen) <= 45


def test_a_generator_at_its_end_is_not_taken_for_the_engines_limit() -> None:
    def observe(rate: int) -> Kind:
        return Kind.KEPT_UP if rate < 30_000 else Kind.GENERATOR_BOUND

    found = climb(observe, 1_000, TOLERANCE)
    assert found.falls_behind is None
    assert found.keeps_up == 16_000
    assert "generator-bound at 32,000/s" in (found.stopped_by or "")


def test_an_engine_that_keeps_up_with_nothing_ends_the_climb() -> None:
    found = climb(lambda _rate: Kind.FELL_BEHIND, 1_000, TOLERANCE)
    assert found.keeps_up is None
    assert found.stopped_by


def test_a_right_bracket_is_confirmed_by_five_runs() -> None:
    runs: list[int] = []

    def run(rate: int) -> Kind:
        runs.append(rate)
        return engine(10_000)(rate)

    assert confirm(run, Bracket(9_800, 10_200), TOLERANCE) == Bracket(9_800, 10_200)
    assert runs == [9_800] * 3 + [10_200] * 2


@pytest.mark.parametrize("first", [Bracket(7_500, 7_800), Bracket(12_000, 12_500)])
def test_a_wrong_bracket_is_moved_to_the_truth(first: Bracket) -> None:
    found = confirm(engine(10_000), first, TOLERANCE)
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= 10_000 < found.falls_behind
    assert found.falls_behind <= found.keeps_up * 1.051 + 1


@given(limit=st.integers(1_000, 1_000_000), wrong_by=st.floats(0.2, 5))
def test_however_wrong_the_climb_was_a_few_rates_are_enough(limit: int, wrong_by: float) -> None:
    rates: set[int] = set()

    def run(rate: int) -> Kind:
        rates.add(rate)
        return engine(limit)(rate)

    low = max(1, round(limit * wrong_by))
    found = confirm(run, Bracket(low, round(low * 1.05) + 1), TOLERANCE)
    assert found.stopped_by is None
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= limit < found.falls_behind
    assert found.is_within(0.051)
    assert len(rates) <= 13


def test_undecided_runs_are_repeated_and_never_counted() -> None:
    answers = iter([Kind.KEPT_UP, Kind.KEPT_UP, Kind.UNDECIDED, Kind.KEPT_UP])

    def run(rate: int) -> Kind:
        return next(answers) if rate == 9_800 else Kind.FELL_BEHIND

    assert confirm(run, Bracket(9_800, 10_200), TOLERANCE) == Bracket(9_800, 10_200)


def test_a_rate_that_was_not_truly_offered_confirms_nothing() -> None:
    def run(rate: int) -> Kind:
        return Kind.KEPT_UP if rate == 9_800 else Kind.GENERATOR_BOUND

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert found == Bracket(None, None, "generator-bound at 10,200/s")


def test_runs_that_contradict_each_other_are_said_to() -> None:
    chance = random.Random(1)  # noqa: S311  # chance is all that is wanted
    count = 0

    def run(_rate: int) -> Kind:
        nonlocal count
        count += 1
        return chance.choice([Kind.UNDECIDED, Kind.UNDECIDED, Kind.FELL_BEHIND])

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert found.keeps_up is None
    assert "contradict" in (found.stopped_by or "")
    assert count <= 8 * MAX_SHIFTS


def test_where_no_run_decides_the_rates_move_apart_and_it_is_said() -> None:
    def run(rate: int) -> Kind:
        if 9_000 < rate < 12_000:
            return Kind.UNDECIDED
        return Kind.KEPT_UP if rate <= 9_000 else Kind.FELL_BEHIND

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert (found.keeps_up, found.falls_behind) == (6_533, 15_300)
    assert "between 6,533/s" in (found.stopped_by or "")
    assert "swings too much" in (found.stopped_by or "")


def test_an_undecided_rate_is_given_up_after_two_runs() -> None:
    runs: list[int] = []

    def run(rate: int) -> Kind:
        runs.append(rate)
        return Kind.UNDECIDED

    confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert runs[:3] == [9_800, 9_800, 6_533]
