"""Tests that the calibration engine, a fake engine, has exactly the defects that are programmed."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Message

from racetrack.config import for_record, load
from racetrack.engines import calibration_engine
from racetrack.engines.cal.consumer import (
    Burner,
    Counting,
    Telling,
    Trailing,
    by_partition,
    defect_of,
    due_ms,
    write_counts,
)
from racetrack.engines.cal.services.cal import SERVICE
from racetrack.engines.cal.settings import CalibrationSettings
from racetrack.engines.cal.sinks import Count, Total
from racetrack.engines.shared.python_program import READY_FILE
from racetrack.plan.model import find_plan, read_plan_file
from racetrack.plan.resolve import resolve
from racetrack.results.defects import InjectedDefect
from racetrack.run import calibration
from racetrack.stack.service import Context
from tests.json_messages import VALID, Row
from tests.stack.conftest import context, settings

__all__ = ["context", "settings"]  # fixtures

NOW_MS = 1_795_000_000_000


def pageview(partition: int, due_ms: int) -> Message:
    body = {"user_id": 7, "received_at": due_ms}
    return Message("pageviews", partition, 0, value=json.dumps(body).encode())


def test_a_delay_is_exact_to_the_millisecond() -> None:
    counting = Counting(1, InjectedDefect(delay_ms=250))
    counting.add(0, [NOW_MS, NOW_MS + 1])
    totals = []
    for now_ms in (NOW_MS + 249, NOW_MS + 250, NOW_MS + 251):
        counting.count(now_ms, 1.0)
        totals.append(counting.total[0])
    assert totals == [0, 1, 2]


def test_idle_time_is_lost_to_a_capacity() -> None:
    counting = Counting(1, InjectedDefect(capacity_per_s=100))
    counting.count(NOW_MS, 10.0)
    counting.add(0, [NOW_MS] * 1000)
    counting.count(NOW_MS + 1000, 11.0)
    assert counting.total == [100]


def test_a_capacity_is_spent_on_the_oldest_whatever_its_partition() -> None:
    counting = Counting(3, InjectedDefect(capacity_per_s=1))
    counting.add(0, [NOW_MS + 2, NOW_MS + 5])
    counting.add(1, [NOW_MS + 1, NOW_MS + 6])
    counting.add(2, [NOW_MS + 3])
    totals = []
    for second in range(1, 5):
        counting.count(NOW_MS + 9, float(second))
        totals.append(list(counting.total))
    assert totals == [[0, 1, 0], [1, 1, 0], [1, 1, 1], [2, 1, 1]]


@pytest.mark.parametrize("capacity", [0, 1_000_000])
def test_a_stalled_partition_stands_still_and_the_others_go_on(capacity: int) -> None:
    defect = InjectedDefect(
        capacity_per_s=capacity, stalled_partition=1, stall_after_s=2.0, stall_for_s=3.0
    )
    counting = Counting(2, defect)
    totals = []
    for second in (1.0, 2.0, 4.0, 5.0):
        for partition in (0, 1):
            counting.add(partition, [NOW_MS] * 10)
        counting.count(NOW_MS, second)
        totals.append(list(counting.total))
    assert totals == [[10, 10], [20, 10], [30, 10], [40, 40]]


def test_each_counted_pageview_costs_the_programmed_cpu_time() -> None:
    counting, ticks = Counting(1, InjectedDefect()), iter(range(10_000))
    burner = Burner(250_000, cpu_s=lambda: next(ticks))  # each reading of the clock is 1 s later
    counting.add(0, [1] * 40)
    counting.count(now_ms=1, since_start_s=1.0)
    burner.burn(counting)
    assert next(ticks) == 0.25 * 40 + 1
    burner.burn(counting)
    assert next(ticks) == 0.25 * 40 + 4, "nothing new was counted"


class Recorder:
    """A sink that records what is written, and when."""

    def __init__(self) -> None:
        self.written: list[tuple[float, Total | None, Sequence[Count]]] = []

    def write_counts(self, total: Total | None, counts: Sequence[Count]) -> None:
        self.written.append((time.monotonic(), total, counts))

    def write_traced(self, newest_ms: Mapping[int, int]) -> None:
        raise NotImplementedError


def test_what_has_changed_is_written_once() -> None:
    counting, telling, sink = Counting(3, InjectedDefect()), Telling(3), Recorder()
    counting.add(0, [NOW_MS - 7, NOW_MS - 4])
    counting.add(2, [NOW_MS - 9])
    counting.count(NOW_MS, 1.0)
    write_counts(sink, counting, telling.changed(counting), 0)
    write_counts(sink, counting, telling.changed(counting), 0)
    counts = [Count(0, 2, NOW_MS - 4), Count(2, 1, NOW_MS - 9)]
    assert [written[1:] for written in sink.written] == [(Total(3, NOW_MS - 4), counts)]


@pytest.mark.parametrize("row", VALID, ids=lambda row: row.name)
def test_a_valid_message_is_read_as_by_all_engines(row: Row) -> None:
    assert due_ms(row.value, "received_at") == row.due_ms


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        b"{}",
        b'{"received_at": Infinity}',
        100_000 * b"[",
    ],
)
def test_a_message_that_is_no_pageview_ends_it_and_is_named(wrong: bytes | None) -> None:
    place = "RACETRACK refused topic=pageviews, partition=3, offset=812, field=, reason=.*Error"
    batch = [pageview(3, NOW_MS), Message("pageviews", 3, 812, value=wrong)]
    with pytest.raises(SystemExit, match=place):
        by_partition(batch, "received_at")


@pytest.mark.slow
def test_no_defect_of_the_users_own_settings_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CAL_DELAY_MS", "CAL_CAPACITY_PER_S", "CAL_STALLED_PARTITION"):
        monkeypatch.setenv(name, "3")
    plan = resolve(read_plan_file(find_plan(calibration.PLAN)), calibration.PLAN)
    own = CalibrationSettings.of(load(plan.cells[0].settings))
    assert (own.cal_delay_ms, own.cal_capacity_per_s) == (0, 0)
    assert own.cal_stalled_partition == -1


def test_a_defect_reaches_the_engine_as_it_was_asked_for() -> None:
    defect = InjectedDefect(
        delay_ms=250,
        capacity_per_s=8_000,
        stalled_partition=2,
        stall_after_s=3,
        stall_for_s=18,
        cycle_ms=1_000,
        spread_ms=15,
        capacity_noise_pct=12.5,
        capacity_noise_tau_s=4,
        pause_ms=300,
        pause_every_s=5,
        seed=3,
    )
    settings = calibration_engine().settings_of(defect)
    assert defect_of({**settings, "ENGINE_REPLICAS": "1"}) == defect
    assert InjectedDefect.of_settings(for_record(load(settings))) == defect


@pytest.mark.parametrize(("exponent", "capacity_per_s"), [(1, 4_000), (0.5, 2_000), (0, 1_000)])
def test_replicas_raise_the_capacity_by_the_programmed_law(
    exponent: float, capacity_per_s: int, context: Context
) -> None:
    one = InjectedDefect(capacity_per_s=1_000, scaling_exponent=exponent)
    given = {**calibration_engine().settings_of(one), "ENGINE_REPLICAS": "4"}
    env = SERVICE.launch(replace(context, settings=load(given))).env
    assert defect_of(env).capacity_per_s == capacity_per_s


def test_what_a_killed_consumer_said_does_not_count_for_the_next(context: Context) -> None:
    SERVICE.launch(context)
    (context.work / READY_FILE).touch()
    SERVICE.launch(context)
    assert not (context.work / READY_FILE).exists()


def test_its_view_holds_what_was_counted_a_known_time_ago() -> None:
    counting, trailing = Counting(2, InjectedDefect()), Trailing(2, behind_ms=100)
    found = []
    for step in range(30):
        now_ms = NOW_MS + 10 * step
        counting.add(step % 2, [now_ms])
        counting.count(now_ms, 1.0)
        found += [(now_ms, *row) for row in trailing.changed(counting, now_ms).items()]
    assert found[0] == (NOW_MS + 100, 0, NOW_MS)
    assert len(found) == 20
    assert found[-1][1:] == (1, NOW_MS + 190)
