"""Tests of the counters that the generator's processes share, and of the histogram of lateness."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import counters as c
from loadgen.clock import NS_PER_MS
from loadgen.stats import Sample, Window

PARTITIONS, WORKERS = 3, 2


@pytest.fixture
def shared() -> Iterator[tuple[c.Counters, c.Counters]]:
    """Yield two objects for the same shared memory."""
    fd = c.create_fd(PARTITIONS, WORKERS)
    yield c.Counters(fd, PARTITIONS, WORKERS), c.Counters(fd, PARTITIONS, WORKERS)
    os.close(fd)


def test_one_side_sees_what_the_other_counts(shared: tuple[c.Counters, c.Counters]) -> None:
    worker, control = shared
    worker.word[worker.partition(2) + c.HANDED] += 5
    worker.word[worker.worker(1) + c.CPU_NS] = 7
    worker.late(1, 900, 4)
    assert control.column(c.HANDED) == [0, 0, 5]
    assert control.of_worker(1, c.CPU_NS) == 7
    assert sum(control.lateness(WORKERS)) == 4
    assert control.column(c.REFUSED) == [0, 0, 0]


@given(st.integers(-10, 2**36 - 1))
def test_a_class_holds_its_lateness_within_four_percent(lateness_us: int) -> None:
    top_us = c.class_top_us(c.class_of(lateness_us))
    assert max(lateness_us, 0) <= top_us <= max(lateness_us, 0) * 1.04


@given(st.lists(st.integers(0, 10**7), min_size=1))
def test_quantiles_are_never_too_good(sample_us: list[int]) -> None:
    histogram = [0] * c.CLASSES
    for lateness_us in sample_us:
        histogram[c.class_of(lateness_us)] += 1
    assert c.quantile_us(histogram, 1.0) >= max(sample_us)
    assert c.quantile_us(histogram, 0.5) >= sorted(sample_us)[(len(sample_us) - 1) // 2]


def test_the_window_shows_recent_rate_and_lateness() -> None:
    window = Window()
    histogram = [0] * c.CLASSES
    for tick in range(300):  # 30 s: late at first, then punctual, 100 events a tick
        histogram[c.class_of(50_000 if tick < 100 else 1_000)] += 100
        window.add(Sample(tick * 100 * NS_PER_MS, (tick + 1) * 100, list(histogram)))
    assert window.achieved_per_s() == 1000.0
    assert window.lateness_ms()["max"] == pytest.approx(1.0, rel=0.04)
