"""The search for the limit, on engines that are made up: it ends, near the truth, and honestly."""

import random
from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.results_record import VerdictKind
from racetrack.run.bracket import (
    MAX_STEPS,
    MOST_UNDECIDED_RATES,
    Bracket,
    climb,
    confirm,
    is_within,
)

TOLERANCE = 0.05


def engine(limit: float) -> Callable[[int], VerdictKind]:
    """Keeps up with rates up to `limit`, always decided."""
    return lambda rate: VerdictKind.KEPT_UP if rate <= limit else VerdictKind.FELL_BEHIND


@given(limit=st.integers(2, 10_000_000), start=st.integers(1, 100_000))
def test_the_climb_brackets_any_limit_to_the_tolerance(limit: int, start: int) -> None:
    seen: list[int] = []

    def observe(rate: int) -> VerdictKind:
        seen.append(rate)
        return engine(limit)(rate)

    found = climb(observe, start, TOLERANCE)
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= limit < found.falls_behind
    assert found.falls_behind <= found.keeps_up * 1.05 + 1
    assert len(seen) <= 45


def test_a_generator_at_its_end_is_not_taken_for_the_engines_limit() -> None:
    def observe(rate: int) -> VerdictKind:
        return VerdictKind.KEPT_UP if rate < 30_000 else VerdictKind.GENERATOR_BOUND

    found = confirm(observe, climb(observe, 1_000, TOLERANCE), TOLERANCE)
    assert found.falls_behind is None
    assert found.keeps_up is not None
    assert 30_000 / 1.06 < found.keeps_up < 30_000
    assert "generator-bound at 30," in (found.stopped_by or "")


def test_below_a_generator_at_its_end_the_engines_limit_is_still_found() -> None:
    def observe(rate: int) -> VerdictKind:
        return engine(20_000)(rate) if rate < 30_000 else VerdictKind.GENERATOR_BOUND

    found = confirm(observe, Bracket(8_000, 32_000), TOLERANCE)
    assert found.stopped_by is None
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= 20_000 < found.falls_behind


def test_the_climb_passes_over_what_it_cannot_tell_and_leaves_it_to_fresh_runs() -> None:
    """An engine as it was, live: noise from 64,000/s on, behind at 320,000/s."""
    seen: list[int] = []

    def observe(rate: int) -> VerdictKind:
        seen.append(rate)
        if 60_000 < rate < 300_000:
            return VerdictKind.UNDECIDED
        return engine(60_000)(rate)

    assert climb(observe, 8_000, TOLERANCE) == Bracket(32_000, 512_000)
    assert seen == [8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 128_000]


def test_an_engine_that_keeps_up_with_nothing_ends_the_climb() -> None:
    found = climb(lambda _rate: VerdictKind.FELL_BEHIND, 1_000, TOLERANCE)
    assert found.keeps_up is None
    assert found.stopped_by


def test_a_right_guess_is_confirmed_by_five_runs() -> None:
    runs: list[int] = []

    def run(rate: int) -> VerdictKind:
        runs.append(rate)
        return engine(10_000)(rate)

    assert confirm(run, Bracket(9_800, 10_200), TOLERANCE) == Bracket(9_800, 10_200)
    assert sorted(runs) == [9_800] * 3 + [10_200] * 2


@pytest.mark.parametrize("first", [Bracket(7_500, 7_800), Bracket(12_000, 12_500)])
def test_a_wrong_bracket_is_moved_to_the_truth(first: Bracket) -> None:
    found = confirm(engine(10_000), first, TOLERANCE)
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= 10_000 < found.falls_behind
    assert found.falls_behind <= found.keeps_up * 1.051 + 1


@given(limit=st.integers(1_000, 1_000_000), wrong_by=st.floats(0.2, 5))
def test_however_wrong_the_climb_was_few_runs_are_enough(limit: int, wrong_by: float) -> None:
    runs: list[int] = []

    def run(rate: int) -> VerdictKind:
        runs.append(rate)
        return engine(limit)(rate)

    low = max(1, round(limit * wrong_by))
    found = confirm(run, Bracket(low, round(low * 1.05) + 1), TOLERANCE)
    assert found.stopped_by is None
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert found.keeps_up <= limit < found.falls_behind
    assert is_within(found.keeps_up, found.falls_behind, TOLERANCE)
    assert len(runs) <= 16


def test_undecided_runs_are_repeated_and_never_counted() -> None:
    answers = iter(
        [VerdictKind.KEPT_UP, VerdictKind.KEPT_UP, VerdictKind.UNDECIDED, VerdictKind.KEPT_UP]
    )

    def run(rate: int) -> VerdictKind:
        return next(answers) if rate == 9_800 else VerdictKind.FELL_BEHIND

    assert confirm(run, Bracket(9_800, 10_200), TOLERANCE) == Bracket(9_800, 10_200)


def test_a_rate_that_was_not_truly_offered_confirms_nothing_above_it() -> None:
    def run(rate: int) -> VerdictKind:
        return VerdictKind.KEPT_UP if rate == 9_800 else VerdictKind.GENERATOR_BOUND

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert found == Bracket(9_800, None, "generator-bound at 10,200/s")


@given(seed=st.integers(0, 100_000), kinds=st.sets(st.sampled_from(list(VerdictKind)), min_size=1))
def test_it_ends_whatever_the_runs_say_and_claims_only_what_they_said(
    seed: int, kinds: set[VerdictKind]
) -> None:
    chance = random.Random(seed)  # noqa: S311  # chance is all that is wanted
    ended: dict[int, list[VerdictKind]] = defaultdict(list)

    def run(rate: int) -> VerdictKind:
        ended[rate].append(chance.choice(sorted(kinds)))
        return ended[rate][-1]

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert len(ended) <= MAX_STEPS
    assert max(map(len, ended.values())) <= 4
    if found.keeps_up is not None:
        kept = ended[found.keeps_up]
        assert kept.count(VerdictKind.KEPT_UP) == 3
        assert VerdictKind.FELL_BEHIND not in kept
    if found.falls_behind is not None:
        fell = ended[found.falls_behind]
        assert fell.count(VerdictKind.FELL_BEHIND) == 2
        assert fell.count(VerdictKind.KEPT_UP) <= 1
    if found.stopped_by is None:
        assert found.keeps_up is not None
        assert found.falls_behind is not None
        assert is_within(found.keeps_up, found.falls_behind, TOLERANCE)


def test_where_no_run_decides_the_rates_stay_apart_and_it_is_said() -> None:
    def run(rate: int) -> VerdictKind:
        if 9_000 < rate < 12_000:
            return VerdictKind.UNDECIDED
        return VerdictKind.KEPT_UP if rate <= 9_000 else VerdictKind.FELL_BEHIND

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert found.keeps_up is not None
    assert found.falls_behind is not None
    assert 9_000 / 1.16 < found.keeps_up <= 9_000
    assert 12_000 <= found.falls_behind < 12_000 * 1.16
    assert f"between {found.keeps_up:,}/s" in (found.stopped_by or "")
    assert "swings too much" in (found.stopped_by or "")


def test_an_engine_of_which_no_run_decides_is_given_up_and_never_driven_up() -> None:
    runs: list[int] = []

    def run(rate: int) -> VerdictKind:
        runs.append(rate)
        return VerdictKind.UNDECIDED

    found = confirm(run, Bracket(9_800, 10_200), TOLERANCE)
    assert runs[:2] == [10_200, 9_800]
    assert len(runs) == len(set(runs)) <= MOST_UNDECIDED_RATES + 2
    assert max(runs) == 10_200
    assert found.keeps_up is None
    assert found.falls_behind is None
    assert "do not decide" in (found.stopped_by or "")


def test_a_rate_that_does_not_stand_gives_way_to_the_next_that_was_seen() -> None:
    """An engine as it was at 293,441/s: behind in the first run, undecided in the next two."""
    runs: list[int] = []

    def run(rate: int) -> VerdictKind:
        runs.append(rate)
        if 190_000 < rate < 290_000 or (200_000 < rate < 300_000 and runs.count(rate) > 1):
            return VerdictKind.UNDECIDED
        return engine(190_000)(rate)

    found = confirm(run, Bracket(160_000, 320_000), TOLERANCE)
    assert found.keeps_up is not None
    assert 160_000 <= found.keeps_up <= 190_000
    assert found.falls_behind == 320_000
    assert max(runs) == 320_000


def test_where_hardly_any_rate_can_be_told_the_two_that_can_are_still_found() -> None:
    """An engine as it was on two cores: nothing sure between 107,000 and 320,000/s."""

    def run(rate: int) -> VerdictKind:
        if rate <= 110_000:
            return VerdictKind.KEPT_UP
        return VerdictKind.FELL_BEHIND if rate >= 320_000 else VerdictKind.UNDECIDED

    found = confirm(run, Bracket(160_000, 320_000), TOLERANCE)
    assert found.keeps_up is not None
    assert found.keeps_up <= 110_000
    assert found.falls_behind == 320_000
    assert "swings too much" in (found.stopped_by or "")


def test_a_slow_engine_of_which_no_run_decides_is_not_said_to_keep_up_with_nothing() -> None:
    found = confirm(lambda _rate: VerdictKind.UNDECIDED, Bracket(3, 4), TOLERANCE)
    assert (found.keeps_up, found.falls_behind) == (None, None)
    assert "do not decide" in (found.stopped_by or "")
