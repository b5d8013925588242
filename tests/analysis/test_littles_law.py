"""Little's law on made-up runs: it holds where the records agree, and shows which does not."""

from dataclasses import replace

import numpy as np
import pytest

from racetrack.analysis import outcome, raw
from racetrack.analysis.curves import Curve, Curves
from racetrack.results.figures import LittlesLaw
from tests.analysis import synthetic
from tests.analysis.synthetic import Race

LATE = Race(rate_per_s=4_000, delay_ms=500, cycle_ms=1_000)
RACES = (
    LATE,
    replace(LATE, cycle_ms=50, delay_ms=20, noise_ms=5),
    replace(LATE, leak=0.3),
    replace(LATE, pause_at_ms=10_000, pause_ms=4_000),
    replace(LATE, rate_per_s=40, cycle_ms=50, delay_ms=250, noise_ms=5),
    replace(LATE, stalled_partition=1, stalled_at_ms=-1_000),
)


def checked(
    told: Curves, race: Race, totals_of: Curves | None = None, summary_after_ms: float = 0.0
) -> LittlesLaw | None:
    """The law on these curves; the totals are those of a good record of the same run."""
    true = totals_of or told
    due = [sum(row) for row in zip(*(c.count for c in true.due), strict=True)]
    arrivals = [
        raw.Arrival(int(at), int(n), int(n)) for at, n in zip(true.due[0].at_ms, due, strict=True)
    ]
    times = np.unique(np.concatenate([curve.at_ms for curve in true.processed]))
    counted = np.zeros(len(times))
    for curve in true.processed:
        rows = np.searchsorted(curve.at_ms, times, "right")
        counted += np.concatenate([[0.0], curve.count])[rows]
    delays = [raw.Delay(int(t), int(n), 0, 0.0) for t, n in zip(times, counted, strict=True)]
    return outcome.littles_law(
        *(told, arrivals, delays, *race.window), summary_after_ms=summary_after_ms
    )


def curves(race: Race) -> Curves:
    return synthetic.curves(race, np.random.default_rng(7))


def later(curve: Curve, by_ms: float) -> Curve:
    return Curve(curve.at_ms + by_ms, curve.count)


@pytest.mark.parametrize("race", RACES)
def test_it_holds_where_the_records_agree(race: Race) -> None:
    found = checked(curves(race), race)
    assert found
    assert found.holds
    assert found.waiting == pytest.approx(found.rate_times_age, abs=race.partitions / 2)


def test_both_sides_are_the_truth() -> None:
    race = replace(LATE, cycle_ms=50, delay_ms=500, noise_ms=0)
    found = checked(curves(race), race)
    assert found
    # From the delay to a cycle more, and what the engine was late by itself: 1 % of a cycle.
    assert found.rate_times_age == pytest.approx(4 * (500 + 25.5), rel=0.01)
    assert found.waiting == pytest.approx(4 * (500 + 25.5), rel=0.01)


@pytest.mark.parametrize("by_ms", [-100.0, -20.0, 20.0, 100.0])
def test_rows_with_wrong_times_break_it(by_ms: float) -> None:
    """At this rate and age, 2 times whole milliseconds and 1 % make a tolerance of 16 ms."""
    told = curves(LATE)
    wrong = replace(told, processed=tuple(later(c, by_ms) for c in told.processed))
    found = checked(wrong, LATE, totals_of=told)
    assert found
    assert not found.holds
    assert found.rate_times_age - found.waiting == pytest.approx(4 * by_ms, abs=4)


def test_an_engine_may_tell_its_total_later_than_its_progress() -> None:
    true = curves(LATE)
    late = replace(true, processed=tuple(later(each, 20.0) for each in true.processed))
    broken = checked(true, LATE, late)
    assert broken and not broken.holds and broken.waiting > broken.rate_times_age
    allowed = checked(true, LATE, late, summary_after_ms=25.0)
    assert allowed and allowed.holds


def test_a_partition_left_out_of_all_curves_breaks_it() -> None:
    told = curves(LATE)
    names = ("partitions", "due", "handed_over", "published", "processed")
    fewer = Curves(**{name: getattr(told, name)[1:] for name in names})
    found = checked(fewer, LATE, totals_of=told)
    assert found
    assert not found.holds
    assert found.ratio == pytest.approx(0.75, abs=0.01)


def test_a_partition_that_is_never_told_breaks_it() -> None:
    told = curves(LATE)
    nothing = Curve(np.empty(0), np.empty(0))
    found = checked(replace(told, processed=(nothing, *told.processed[1:])), LATE, totals_of=told)
    assert found is None or not found.holds


def test_messages_counted_twice_break_it() -> None:
    told = curves(LATE)
    twice = tuple(Curve(c.at_ms, c.count + 200) for c in told.processed)
    found = checked(replace(told, processed=twice), LATE, totals_of=told)
    assert found
    assert not found.holds


def test_the_warning_has_both_sides() -> None:
    told = curves(LATE)
    wrong = replace(told, processed=tuple(later(c, 300) for c in told.processed))
    found = checked(wrong, LATE, totals_of=told)
    assert found
    said = outcome.littles_law_warning(found)
    assert f"{found.waiting:,.0f} pageviews waited" in said
    assert f"is {found.rate_times_age:,.0f}" in said


def test_nothing_is_said_of_a_window_without_a_record() -> None:
    told = curves(LATE)
    assert outcome.littles_law(told, [], [], *LATE.window) is None
