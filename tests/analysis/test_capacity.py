"""Tests of capacity: throughput at saturation, its interval, and CPU time per million events."""

import numpy as np
import pytest

from racetrack.analysis.capacity import Work, cpu_s_per_million, estimate, slowest, work
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.raw import Reading
from simulations.synthetic import START_MS

SECONDS = 150
PARTITIONS = 3
BATCH_S = 30


def overloaded(
    works_per_s: float = 9_000.0,
    backlog: float = 100_000.0,
    update_interval_ms: float = 1_000.0,
    wavers: float = 0.0,
) -> Curves:
    """Return the curves of an engine that counts at this rate, which varies by the share `wavers`
    over 60 s. `backlog` events are published and not counted yet; half as many are due and not
    published yet."""
    grid_ms = np.arange(0, 1000 * SECONDS + 100, 100.0)
    told_ms = np.arange(137.0, 1000 * SECONDS, update_interval_ms)

    def counted(at_ms: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[Curve]:
        swing = wavers * 60 / (2 * np.pi) * (1 - np.cos(2 * np.pi * at_ms / 60_000))
        total = works_per_s * (at_ms / 1000 + swing)
        return [Curve(at_ms + START_MS, np.floor(total / PARTITIONS)) for _ in range(PARTITIONS)]

    def ahead(by: float) -> tuple[Curve, ...]:
        return tuple(Curve(c.at_ms, c.count + by / PARTITIONS) for c in counted(grid_ms))

    return Curves(
        tuple(range(PARTITIONS)),
        ahead(1.5 * backlog),
        ahead(backlog),
        ahead(backlog),
        tuple(counted(told_ms)),
    )


def seen(curves: Curves) -> Work:
    return work(curves, START_MS, START_MS + 1000 * SECONDS, BATCH_S)


@pytest.mark.parametrize("update_interval_ms", [100.0, 1_000.0, 7_000.0])
def test_work_is_counted_from_update_to_update(update_interval_ms: float) -> None:
    recorded = seen(overloaded(update_interval_ms=update_interval_ms))
    assert recorded.per_s == pytest.approx(9_000, rel=1e-3)
    assert len(recorded.batches_per_s) == 5
    assert recorded.is_capacity


def works(per_s: float, idle_share: float = 0.0) -> Work:
    return Work((per_s,), backlog_min_s=5, backlog_max_s=10, idle_share=idle_share)


@pytest.mark.parametrize(
    "views",
    [
        {},
        {"swift": works(9_100)},
        {"as": works(8_850)},  # may be chance
        {"idle": works(3_000, idle_share=0.5)},  # processes only what arrives
    ],
)
def test_a_view_that_works_as_its_count_or_is_idle_changes_nothing(views: dict[str, Work]) -> None:
    assert slowest(works(9_000), views) == (None, works(9_000))


def test_an_engine_works_as_its_slowest_view() -> None:
    views = {"swift": works(9_100), "slow": works(8_800), "slower": works(8_700)}
    assert slowest(works(9_000), views) == ("slower", views["slower"])


def test_batches_show_how_work_wavers() -> None:
    recorded = seen(overloaded(wavers=0.2))
    half_a_wave = 9_000 * 0.2 * 2 / np.pi
    assert max(recorded.batches_per_s) == pytest.approx(9_000 + half_a_wave, rel=0.01)
    assert min(recorded.batches_per_s) == pytest.approx(9_000 - half_a_wave, rel=0.01)


def test_the_age_of_the_backlog_is_measured() -> None:
    # Judge only the later part. At first, the age is unknown, because 90,000 events were due
    # before the recording.
    curves = overloaded(backlog=60_000)
    recorded = work(curves, START_MS + 30_000, START_MS + 1000 * SECONDS, BATCH_S)
    assert recorded.backlog_min_s == pytest.approx(10, abs=0.2)
    assert recorded.backlog_max_s == pytest.approx(11, abs=0.2)


def test_an_engine_that_had_nothing_to_do_shows_no_capacity() -> None:
    recorded = seen(overloaded(backlog=0))
    assert recorded.idle_share > 0.9
    assert not recorded.is_capacity


def test_one_idle_partition_is_enough_to_doubt_it() -> None:
    curves = overloaded()
    caught_up = Curve(curves.published[1].at_ms, curves.published[1].count - 100_000 / PARTITIONS)
    published = (curves.published[0], caught_up, curves.published[2])
    recorded = seen(Curves(curves.partitions, curves.due, curves.due, published, curves.processed))
    assert recorded.idle_share > 0.9


def test_fewer_than_two_updates_give_no_rate() -> None:
    with pytest.raises(ValueError, match="fewer than two updates"):
        work(overloaded(), START_MS + 200, START_MS + 300, BATCH_S)


def of_batches(*rates: float) -> Work:
    return Work(rates, backlog_min_s=10, backlog_max_s=20, idle_share=0)


def test_the_interval_is_students() -> None:
    found = estimate([of_batches(90, 110), of_batches(110, 90)])
    assert found.per_s == 100
    # t = 3.182 with 3 degrees of freedom; the standard deviation of the 4 batches is 11.55.
    assert found.low == pytest.approx(81.6, abs=0.05)
    assert found.high == pytest.approx(118.4, abs=0.05)


def test_the_interval_holds_every_session() -> None:
    found = estimate([of_batches(*[80.0] * 5), of_batches(*[120.0] * 5), of_batches(*[100.0] * 5)])
    assert found.low <= 80 and found.high >= 120


def test_one_batch_has_no_interval() -> None:
    found = estimate([of_batches(100)])
    assert (found.low, found.per_s, found.high) == (-np.inf, 100, np.inf)


def account(cores: float, *, until_s: int = 200) -> list[Reading]:
    """Return one reading per second of a service that always uses `cores` cores, and has used 7 s
    of CPU time before."""
    return [Reading(1_000 * s, 7 + cores * s, 5.0, 0.1) for s in range(until_s + 1)]


def test_each_service_has_its_cpu_time_of_the_interval() -> None:
    usage = {"engine": account(1.2), "broker": account(0.3)}
    spent = cpu_s_per_million(usage, 20_500, 140_500, counted=120 * 50_000)
    assert spent == {"engine": pytest.approx(24.0), "broker": pytest.approx(6.0)}


def test_what_was_used_before_and_after_does_not_count() -> None:
    readings = [Reading(0, 0, 0, 0.1), Reading(10_000, 9, 5, 0.1), Reading(20_000, 10, 5, 0.1)]
    readings.append(Reading(30_000, 19, 5, 0.1))
    assert cpu_s_per_million({"engine": readings}, 10_000, 20_000, 500_000) == {"engine": 2.0}


def test_without_anything_counted_there_is_no_cost_of_each() -> None:
    assert cpu_s_per_million({"engine": account(1.0)}, 0, 100_000, counted=0) == {}
