"""CPU time per million events comes from the account of each service."""

import pytest

from racetrack.analysis.capacity import cpu_s_per_million
from racetrack.analysis.raw import Reading


def account(cores: float, *, until_s: int = 200) -> list[Reading]:
    """A reading a second of a service that uses so many cores, and had used 7 s before."""
    return [Reading(1_000 * s, 7 + cores * s, 5.0, 0.1) for s in range(until_s + 1)]


def test_each_service_is_told_by_what_it_used_in_the_time() -> None:
    usage = {"engine": account(1.2), "broker": account(0.3)}
    spent = cpu_s_per_million(usage, 20_500, 140_500, counted=120 * 50_000)
    assert spent == {"engine": pytest.approx(24.0), "broker": pytest.approx(6.0)}


def test_what_was_used_before_and_after_does_not_count() -> None:
    readings = [Reading(0, 0, 0, 0.1), Reading(10_000, 9, 5, 0.1), Reading(20_000, 10, 5, 0.1)]
    readings.append(Reading(30_000, 19, 5, 0.1))
    assert cpu_s_per_million({"engine": readings}, 10_000, 20_000, 500_000) == {"engine": 2.0}


def test_without_anything_counted_there_is_no_cost_of_each() -> None:
    assert cpu_s_per_million({"engine": account(1.0)}, 0, 100_000, counted=0) == {}
