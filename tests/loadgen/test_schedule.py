"""Tests of the schedule: exact counts and due times, whatever the rates and their changes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.clock import NS_PER_S
from loadgen.generator import partition_schedules
from loadgen.schedule import Schedule

PER_SECOND = 1000 * NS_PER_S  # the denominator of milli-rates
START_NS = 1_700_000_000 * NS_PER_S

gaps = st.integers(min_value=0, max_value=10 * NS_PER_S)
rates = st.integers(min_value=0, max_value=10_000_000_000)
changes = st.lists(st.tuples(gaps, rates), max_size=6)
phases = st.integers(min_value=0, max_value=PER_SECOND - 1)


def built(first: int, later: list[tuple[int, int]], part: int = 0) -> tuple[Schedule, int]:
    """Return a schedule whose rate changes to each `(gap, rate)` of `later` in turn, and the time
    of the last change."""
    schedule = Schedule.starting(START_NS, first, PER_SECOND, part)
    at_ns = START_NS
    for gap, rate in later:
        at_ns += gap
        schedule.change(at_ns, rate)
    return schedule, at_ns


def reference(first: int, later: list[tuple[int, int]], part: int, t_ns: int) -> int:
    """Compute the number of events due by `t_ns` from its definition, in exact fractions: the part
    of an event at the start plus the integral of the rate, rounded down."""
    total = Fraction(part, PER_SECOND)
    at_ns, rate = START_NS, first
    for gap, next_rate in later:
        until = min(at_ns + gap, max(t_ns, at_ns))
        total += Fraction((until - at_ns) * rate, PER_SECOND)
        at_ns, rate = at_ns + gap, next_rate
    total += Fraction(max(t_ns - at_ns, 0) * rate, PER_SECOND)
    return int(total)


def test_a_steady_rate_is_exact_after_a_day() -> None:
    schedule = Schedule.starting(START_NS, 50_000, PER_SECOND)
    assert schedule.due_by(START_NS + 86_400 * NS_PER_S) == 50 * 86_400


def test_rate_zero_pauses_and_what_was_due_stays_due() -> None:
    schedule = Schedule.starting(START_NS, 10_000, PER_SECOND)
    schedule.change(START_NS + NS_PER_S, 0)
    assert schedule.due_by(START_NS + 100 * NS_PER_S) == 10
    assert schedule.when(11) is None
    with pytest.raises(ValueError, match="never due"):
        schedule.due_at(11)
    schedule.change(START_NS + 100 * NS_PER_S, 10_000)
    assert schedule.when(11) == START_NS + 100 * NS_PER_S + NS_PER_S // 10
    with pytest.raises(ValueError, match="earlier"):
        schedule.change(START_NS + 99 * NS_PER_S, 3)


@given(rates, changes, phases, st.integers(min_value=0, max_value=80 * NS_PER_S))
def test_due_by_is_the_integral_of_the_rate(
    first: int, later: list[tuple[int, int]], part: int, after_ns: int
) -> None:
    schedule, _ = built(first, later, part)
    expected = reference(first, later, part, START_NS + after_ns)
    assert schedule.due_by(START_NS + after_ns) == expected


@given(rates, changes, phases, st.integers(min_value=1, max_value=10**9))
def test_when_is_the_first_nanosecond_at_which_that_many_are_due(
    first: int, later: list[tuple[int, int]], part: int, number: int
) -> None:
    schedule, _ = built(first, later, part)
    at_ns = schedule.when(number)
    if at_ns is None:
        assert schedule.due_by(START_NS + 10**12) < number
    else:
        assert schedule.due_by(at_ns) >= number
        assert schedule.due_by(at_ns - 1) < number


@given(rates, changes, st.floats(min_value=0, max_value=1))
def test_forgetting_what_is_settled_changes_no_answer_about_the_rest(
    first: int, later: list[tuple[int, int]], share: float
) -> None:
    whole, last_ns = built(first, later)
    short, _ = built(first, later)
    settled = int(whole.due_by(last_ns + NS_PER_S) * share)
    short.forget(settled)
    for number in (settled + 1, settled + 2, settled + 1000):
        assert short.when(number) == whole.when(number)
    assert short.due_by(last_ns + NS_PER_S) == whole.due_by(last_ns + NS_PER_S)


@pytest.mark.slow
@given(
    st.lists(st.integers(min_value=0, max_value=3000), min_size=1, max_size=20).filter(any),
    st.integers(min_value=0, max_value=1_000_000),
)
def test_the_partitions_rates_add_up_to_the_whole(user_counts: list[int], rate: int) -> None:
    schedules = partition_schedules(START_NS, user_counts)
    for schedule, users in zip(schedules, user_counts, strict=True):
        schedule.change(START_NS, rate * 1000 * users)
    due = sum(schedule.due_by(START_NS + 1000 * NS_PER_S) for schedule in schedules)
    assert abs(due - rate * 1000) < len(user_counts)
