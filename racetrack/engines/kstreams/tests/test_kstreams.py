"""Tests of Kafka Streams' module without Kafka."""

import threading

import pytest

from racetrack.clock import now_ms
from racetrack.engines import find_engine
from racetrack.engines.contract import Seen, Summary
from racetrack.engines.kstreams.engine import KafkaStreams
from racetrack.engines.shared.tests.fakes import stack, topics
from racetrack.errors import UsageError
from racetrack.workloads.shop.catalogue import TRACED_VIEWS

KSTREAMS = find_engine("kstreams")
SUMMARY = "kstreams.pageviews_summary"
ALL = b'{"summary_of":"all","total":7,"max_received_at":1700000000050,"dt_ms":70}'


def test_what_a_transaction_wrote_counts_from_when_it_was_read() -> None:
    """With exactly-once, a message counts from the time at which the harness reads it. By the
    broker's time, it would count before its transaction has ended."""
    seen = Seen(1_700_000_000_100, "a.b", 0, 3)
    views = {f"kstreams.{view.view}": list[bytes]() for view in TRACED_VIEWS}
    written = topics({"kstreams.pageviews_progress": [], SUMMARY: [ALL], **views})
    engine = KafkaStreams(written, lambda *_: iter([seen]))
    before, stop = now_ms(), threading.Event()
    stop.set()
    there = stack(KSTREAMS_GUARANTEE="exactly_once_v2")
    (events,) = engine.updates(there, stop)
    assert before <= events.timestamp_ms <= now_ms()
    assert isinstance(events, Summary)
    assert events.dt_ms == events.timestamp_ms - 1_700_000_000_050
    assert [*engine.seen(there, TRACED_VIEWS, stop)] == [seen]  # stamped by the reader


def test_it_can_resume_only_with_changelogs_and_replicas_share_their_state() -> None:
    anew = {"KSTREAMS_AFTER_A_KILL": "anew"}
    KSTREAMS.check(stack(ENGINE_REPLICAS="2"))
    KSTREAMS.check(stack(KSTREAMS_CHANGELOG="off", **anew))
    with pytest.raises(UsageError, match="ENGINE_REPLICAS=2"):
        KSTREAMS.check(stack(ENGINE_REPLICAS="2", **anew))
    with pytest.raises(UsageError, match="KSTREAMS_CHANGELOG=off"):
        KSTREAMS.check(stack(KSTREAMS_CHANGELOG="off"))
