"""Tests of the conditions of --fail-if: their syntax, and when they hold."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from racetrack.analysis.table import Interval, Load, Place, Row
from racetrack.errors import UsageError
from racetrack.report.gate import failures, parse, require_comparable
from racetrack.results.run import TRIAL

PLACE = Place("shop", "native", "a machine")
CPU = "cpu_s_per_million"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lag_p99_ms=3", "is not a condition"),
        ("lag_p99>3", "Did you mean lag_p99_ms"),
        ("lag_p99_ms>+3", "sign and percent"),
        ("lag_ms>3", "there is no figure"),  # a figure of live sessions
    ],
)
def test_an_invalid_condition_is_explained(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


def rows(
    *values: float, variant: str = "dh", verdict: str = "kept up", key: str = CPU
) -> list[Row]:
    return [
        Row(
            engine="dh",
            variant=variant,
            place=PLACE,
            load=Load(1_000),
            window="1,000/s",
            values={"lag_p99_ms": 9.0, key: value},
            repeat=repeat,
            verdict=verdict,
        )
        for repeat, value in enumerate(values, start=1)
    ]


def test_a_run_that_did_not_hold_the_load_does_not_pass_by_the_mean_of_all() -> None:
    lags = rows(500, 505, 9_000, key="lag_p99_ms")
    (reason,) = failures([parse("lag_p99_ms>2000")], lags)
    assert reason.endswith("lag_p99_ms is 9,000.")
    (reason,) = failures([parse("lag_p99_ms>+10%")], lags, rows(500, 505, 510, key="lag_p99_ms"))
    assert "a run did not hold the load" in reason
    assert not failures([parse("lag_p99_ms>2000")], rows(500, 505, 1_900, key="lag_p99_ms"))


def recorded(mean: float, half: float) -> list[Row]:
    """Return a row with a mean whose single values are unknown."""
    values: Mapping[str, float] = {CPU: mean, "lag_p99_ms": 9.0}
    intervals = {CPU: Interval(mean - half, mean + half, 3)}
    return [Row("dh", "dh", PLACE, Load(1_000), "", values, intervals=intervals)]


@pytest.mark.parametrize(
    ("now", "before", "holds"),
    [
        (rows(112), rows(100), True),
        (rows(108), rows(100), False),
        (rows(112, 113, 114), rows(100, 101, 102), True),
        (rows(90, 113, 140), rows(80, 101, 125), False),  # within the noise
        (rows(112, 113, 114), recorded(100, 2), True),
        (rows(112, 113, 114), recorded(100, 30), False),
    ],
)
def test_a_change_has_to_be_larger_than_the_noise(
    now: list[Row], before: list[Row], holds: bool
) -> None:
    assert bool(failures([parse(f"{CPU}>+10%")], now, before)) == holds


@pytest.mark.parametrize("value", [math.inf, 3_000.0])
def test_a_figure_that_is_infinite_or_above_the_bound_fails(value: float) -> None:
    assert failures([parse("lag_p99_ms>2000")], rows(value, key="lag_p99_ms"))


@pytest.mark.parametrize("condition", ["view_lag_p99_ms>2000", "capacity_per_s<5", f"{CPU}>+10%"])
def test_a_missing_figure_fails(condition: str) -> None:
    assert failures([parse(condition)], rows(1))


def test_a_verdict_of_any_repeat_counts() -> None:
    made = [*rows(1), *rows(1, verdict="fell behind")]
    assert failures([parse("fell_behind")], made)
    assert not failures([parse("fell_behind")], rows(1))


def test_a_single_variant_is_compared_with_the_only_one_of_its_engine() -> None:
    now = rows(130, variant="dh[CYCLE_MS=100]")
    assert failures([parse(f"{CPU}>+10%")], now, rows(100, variant="dh[CYCLE_MS=1000]"))


def test_the_trials_of_a_search_are_no_baseline() -> None:
    trial = [replace(each, window=f"{TRIAL}1,000/s") for each in rows(1)]
    assert not failures([parse(f"{CPU}>+10%")], rows(100), [*rows(100), *trial])


def test_other_workloads_runtimes_and_brokers_are_not_comparable() -> None:
    made = [replace(row, place=replace(PLACE, broker="Redpanda")) for row in rows(1)]
    for baseline in (rows(1), made):
        require_comparable([("shop", "native", "Redpanda"), ("", "", "")], baseline)
    others = ("ads", "native", ""), ("shop", "compose", ""), ("shop", "native", "Apache Kafka")
    for place in others:
        with pytest.raises(UsageError):
            require_comparable([place], made)
