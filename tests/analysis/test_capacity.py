"""Tests of capacity: throughput at saturation, its interval, and CPU time per million events."""

from dataclasses import replace

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


def works(*per_s: float, idle_share: float = 0.0) -> Work:
    return Work(per_s, idle_share)


def test_an_engine_works_as_its_slowest_view() -> None:
    slower, count = works(8_700), works(9_000)
    views = {"swift": works(9_100), "slow": works(8_800), "slower": slower}
    assert slowest(count, views) == ("slower", slower)
    # A view that is hardly slower may be so by chance; an idle one processes only what arrives.
    views = {"swift": works(9_100), "as": works(8_850), "idle": works(3_000, idle_share=0.5)}
    assert slowest(count, views) == (None, count)


def test_batches_show_how_work_wavers() -> None:
    recorded = seen(overloaded(wavers=0.2))
    half_a_wave = 9_000 * 0.2 * 2 / np.pi
    assert max(recorded.batches_per_s) == pytest.approx(9_000 + half_a_wave, rel=0.01)
    assert min(recorded.batches_per_s) == pytest.approx(9_000 - half_a_wave, rel=0.01)


def test_an_engine_with_nothing_to_do_in_one_partition_shows_no_capacity() -> None:
    assert seen(overloaded(backlog=0)).idle_share > 0.9
    curves = overloaded()
    caught_up = Curve(curves.published[1].at_ms, curves.published[1].count - 100_000 / PARTITIONS)
    published = (curves.published[0], caught_up, curves.published[2])
    recorded = seen(replace(curves, published=published))
    assert recorded.idle_share > 0.9
    assert not recorded.is_capacity


def test_fewer_than_two_updates_give_no_rate() -> None:
    with pytest.raises(ValueError, match="fewer than two updates"):
        work(overloaded(), START_MS + 200, START_MS + 300, BATCH_S)


def test_the_interval_is_students_and_holds_every_session() -> None:
    found = estimate([works(90, 110), works(110, 90)])
    assert found.per_s == 100
    # t = 3.182 with 3 degrees of freedom; the standard deviation of the 4 batches is 11.55.
    assert (found.low, found.high) == pytest.approx((81.6, 118.4), abs=0.05)
    found = estimate([works(*[per_s] * 5) for per_s in (80.0, 120.0, 100.0)])
    assert found.low <= 80 and found.high >= 120
    found = estimate([works(100)])
    assert (found.low, found.per_s, found.high) == (-np.inf, 100, np.inf)


def test_each_service_has_its_cpu_time_of_the_interval() -> None:
    def account(cores: float) -> list[Reading]:
        """Return one reading per second of a service that used 7 s of CPU time before."""
        return [Reading(1_000 * s, 7 + cores * s, 5.0, 0.1) for s in range(201)]

    usage = {"engine": account(1.2), "broker": account(0.3)}
    spent = cpu_s_per_million(usage, 20_500, 140_500, counted=120 * 50_000)
    assert spent == {"engine": pytest.approx(24.0), "broker": pytest.approx(6.0)}
    assert cpu_s_per_million(usage, 0, 100_000, counted=0) == {}
    # What was used before and after does not count.
    uneven = [Reading(10_000 * row, s, 5, 0.1) for row, s in enumerate((0, 9, 10, 19))]
    assert cpu_s_per_million({"engine": uneven}, 10_000, 20_000, 500_000) == {"engine": 2.0}
