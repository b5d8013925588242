"""Tests of the conditions of --fail-if: their syntax, and when they hold."""

import pytest

from racetrack.analysis.intervals import Summary, summary
from racetrack.report.recorded import Repeats, parse, why_it_holds

METRICS = ("lag_p99_ms", "cpu_s_per_million", "capacity_per_s")


@pytest.mark.parametrize(
    ("text", "metric", "compares", "bound", "is_relative"),
    [
        ("lag_p99_ms>2000", "lag_p99_ms", ">", 2_000, False),
        (" lag_p99_ms >= 2.5 ", "lag_p99_ms", ">=", 2.5, False),
        ("capacity_per_s<-10%", "capacity_per_s", "<", -10, True),
        ("cpu_s_per_million>+10%", "cpu_s_per_million", ">", 10, True),
        ("fell_behind", "fell_behind", "", 0, False),
    ],
)
def test_a_condition_is_a_bound_a_change_or_a_verdict(
    text: str, metric: str, compares: str, bound: float, is_relative: bool
) -> None:
    found = parse(text, METRICS)
    assert (found.metric, found.compares, found.bound) == (metric, compares, bound)
    assert found.is_relative == is_relative


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lag_p99_ms=3", "is not a condition"),
        ("lag_p99>3", "Did you mean lag_p99_ms"),
        ("lag_p99_ms>3%", r"sign and percent, such as lag_p99_ms>\+10%"),
        ("lag_p99_ms>+3", "sign and percent"),
    ],
)
def test_what_is_no_condition_is_explained(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text, METRICS)


def group(*values: float, verdict: str = "kept up") -> Repeats:
    return Repeats({"cpu_s_per_million": summary(values)}, frozenset({verdict}))


@pytest.mark.parametrize(
    ("now", "before", "holds"),
    [
        ((112,), (100,), True),
        ((108,), (100,), False),
        ((112, 113, 114), (100, 101, 102), True),
        ((90, 113, 140), (80, 101, 125), False),  # within the noise
        ((112,), (80, 101, 125), True),  # one run has no interval, so no noise
    ],
)
def test_a_change_has_to_be_larger_than_the_noise(
    now: tuple[float, ...], before: tuple[float, ...], holds: bool
) -> None:
    condition = parse("cpu_s_per_million>+10%", METRICS)
    why = why_it_holds(condition, group(*now), {"cpu_s_per_million": summary(before)})
    assert bool(why) == holds


def test_a_result_without_its_runs_has_its_interval() -> None:
    condition = parse("cpu_s_per_million>+10%", METRICS)
    for half, holds in ((2, True), (30, False)):
        before = {"cpu_s_per_million": Summary(100, 100 - half, 100 + half, 3)}
        assert bool(why_it_holds(condition, group(112, 113, 114), before)) == holds


def test_what_is_unknown_does_not_pass() -> None:
    unknown = parse("lag_p99_ms>2000", METRICS)
    assert why_it_holds(unknown, group(1), None) == "lag_p99_ms is unknown or infinite"
    relative = parse("cpu_s_per_million>+10%", METRICS)
    assert "--against has no" in (why_it_holds(relative, group(1), None) or "")


def test_a_verdict_of_any_repeat_counts() -> None:
    condition = parse("fell_behind", METRICS)
    assert why_it_holds(condition, group(1, verdict="fell behind"), None) == "fell behind"
    assert why_it_holds(condition, group(1), None) is None
