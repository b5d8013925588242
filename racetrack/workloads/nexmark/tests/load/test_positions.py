"""Tests of the positions of tracer events that the generator reports, and of its last events."""

import json
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from loadgen import counters as c
from loadgen.clock import NS_PER_MS, NS_PER_S
from loadgen.commands import EVENTS
from loadgen.config import Reader
from loadgen.config import load as load_config
from loadgen.derived import DerivedEvent
from loadgen.generator import Generator
from loadgen.positions import Positions
from loadgen.producer import PartitionState
from loadgen.rdkafka import Accepted
from loadgen.schedule import Schedule
from racetrack.workloads.nexmark.load import make
from racetrack.workloads.nexmark.load.events import NexmarkEvents
from racetrack.workloads.nexmark.load.settings import load
from racetrack.workloads.shop.tests.load.bench import Broker, producer_to
from tests.loadgen.messages import message_ffi
from tests.waiting import wait_until

TRACERS = "tracer_events_per_second"
PARTITIONS = 3
START_NS = 1_774_155_868 * NS_PER_S
ENVIRONMENT = {"WORKLOAD": "nexmark", "EVENTS_PARTITIONS": str(PARTITIONS)}


@pytest.fixture
def counters() -> Iterator[c.Counters]:
    fd = c.create_fd(PARTITIONS, 1)
    yield c.Counters(fd, PARTITIONS, 1)
    os.close(fd)


@pytest.mark.parametrize("capacity", [10_000, 7, 3])
def test_the_position_counts_the_messages_that_were_handed_over(
    counters: c.Counters, capacity: int
) -> None:
    """Also if the queue takes only a part of a batch."""
    broker, noted = Broker(), list[tuple[int, int, int]]()
    broker.capacity = capacity
    now = SimpleNamespace(ns=START_NS)
    producer = producer_to(
        broker,
        counters,
        now,
        on_derived=lambda event, position, due_ms: noted.append((event.number, position, due_ms)),
    )
    schedule = Schedule.starting(START_NS, 1000 * 1000, 1000 * NS_PER_S)
    state = PartitionState(1, schedule, None, 0, [0])
    for number in range(4):
        due_ns = START_NS + (5 * number + 3) * NS_PER_MS
        state.derived.append(DerivedEvent(0, number, 1, f"tracer {number}", due_ns))
    for _ in range(20):
        now.ns += 3 * NS_PER_MS
        producer.turn(state, now.ns, min(now.ns, START_NS + 20 * NS_PER_MS))
        broker.capacity += capacity
    places = {sent.what: place for place, sent in enumerate(broker.topic[1], start=1)}
    assert len(noted) == 4
    for number, position, due_ms in noted:
        assert position == places[f"tracer {number}"]
        assert due_ms == broker.topic[1][position - 1].stamp_ms


def test_positions_are_written_in_order_and_kept_while_the_queue_is_full() -> None:
    ffi = message_ffi()
    broker = SimpleNamespace(taken=2, sent=[])

    def produce(topic: str, _partition: int, messages: Any, count: int) -> Accepted:
        assert topic == "positions"
        taken = min(count, broker.taken)
        texts = (ffi.buffer(each.payload, each.len)[:] for each in messages[0:taken])
        broker.sent += [json.loads(text) for text in texts]
        return Accepted(taken, 0, "")

    client: Any = SimpleNamespace(topic=lambda name: name, produce=produce)
    positions = Positions(client, "positions", ffi)
    for number in range(3):
        positions.note(DerivedEvent(0, number, 1, None, 0), 10 * number + 1, 1_000 + number)
    positions.send()
    assert [row["number"] for row in broker.sent] == [0, 1]
    positions.send()
    positions.send()
    assert [row["number"] for row in broker.sent] == [0, 1, 2]
    assert broker.sent[2] == {"partition": 1, "number": 2, "position": 21, "due_ms": 1_002}


def test_a_pause_ends_with_one_tracer_event_on_each_auction() -> None:
    config, read = load_config(ENVIRONMENT), Reader(ENVIRONMENT)
    workload = make(config, read)
    events = NexmarkEvents(load(config, read), None)
    generator = Generator(config, workload, events, None, print)

    def due() -> int:
        count = json.loads(generator.stats_line())["tracer_events"]["due"]
        return int(count)

    generator.set_rate_milli(EVENTS, 1_000)
    assert due() == 0
    for pauses in (1, 2):
        generator.set_rate_milli(EVENTS, 0)
        generator.set_rate_milli(TRACERS, 0)  # at the same time, but not before the last events
        wait_until(lambda pauses=pauses: due() == pauses * 2 * PARTITIONS, "tracer events")  # type: ignore[misc]
        generator.set_rate_milli(EVENTS, 1_000)
