"""Tests of Nexmark's messages, tracer rows, and the selection of queries."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from racetrack import plugins
from racetrack.config import Settings, load
from racetrack.engines import find_engine
from racetrack.errors import UsageError
from racetrack.run import checks
from racetrack.workloads.contract import overrides, run_label, work_of, workload_in
from racetrack.workloads.message import fault_of
from racetrack.workloads.nexmark.harness import EVENTS, WORKLOAD, bids_until
from racetrack.workloads.nexmark.load.render import message
from racetrack.workloads.nexmark.load.sequence import (
    RESERVED_EVENTS,
    Auction,
    Bid,
    Share,
    event,
    is_bid,
)
from racetrack.workloads.nexmark.load.tracers import Reserved, tracer
from racetrack.workloads.nexmark.tests.load.test_sequence import SEED, texts

DUE_MS, PARTITIONS = 1_774_155_868_000, 6
BID = {"auction": 1, "bidder": 2, "price": 3, "channel": "c", "url": "u", "extra": ""}
PERSON = dict.fromkeys(("name", "emailAddress", "creditCard", "city", "state", "extra"), "x")


def settings_of(queries: str) -> Settings:
    """Return the settings of a run of these queries."""
    return load({"WORKLOAD": "nexmark", "NEXMARK_QUERIES": queries})


def traced(queries: str) -> list[str]:
    return [view.view for view in workload_in(settings_of(queries)).traced_views]


def text(**changes: Any) -> bytes:
    """Return a bid, changed. A field with the value None is left out."""
    fields = {"event_type": 2, "bid": BID, "dateTime": DUE_MS, **changes}
    return json.dumps({name: v for name, v in fields.items() if v is not None}).encode()


@pytest.mark.slow
def test_generated_messages_look_as_usual() -> None:
    share = Share(SEED, 1, PARTITIONS)
    events = [event(share, n, texts(), DUE_MS) for n in range(3, 300)]
    reserved = [Reserved.of(1).event(n) for n in range(3)]
    tracers = [tracer(n, PARTITIONS, is_auction=kind)[1] for kind in (True, False) for n in (0, 1)]
    for each in (*events, *reserved, *tracers):
        assert re.fullmatch(EVENTS.usual, message(each, DUE_MS).decode())


@pytest.mark.parametrize(
    "value",
    [
        text(),
        text(bid=None, event_type=0, person={"id": 7, **PERSON}),
        text(bid={**BID, "extra": "é", "more": 1}),
        text(more="text"),
    ],
)
def test_a_message_with_exactly_its_record_is_valid(value: bytes) -> None:
    assert fault_of(value, EVENTS) is None


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (text(event_type=7), "event_type"),
        (text(event_type=-1), "event_type"),
        (text(event_type="2"), "event_type"),
        (text(bid=None), "bid"),
        (text(bid="text"), "bid"),
        (text(bid={**BID, "price": 1.5}), "bid.price"),
        (text(bid={name: v for name, v in BID.items() if name != "auction"}), "bid.auction"),
        (text(event_type=0), "person"),
        (text(person={"id": 7, **PERSON}), "person"),
        (text(dateTime=None), "dateTime"),
        (text(dateTime=0), "dateTime"),
        (text(Bid=1), "Bid"),
        (b'{"event_type": 2, "bid": {', ""),
    ],
)
def test_any_other_message_is_invalid(value: bytes, field: str) -> None:
    found = fault_of(value, EVENTS)
    assert found
    assert found.field == field


def rows_of(query: str, tracers: list[Auction | Bid]) -> pa.Table:
    """Return the rows that tracer events cause in a query that has one row for each."""
    own = Reserved.of(0)
    rows = {
        "q3": [{"name": own.name, "id": each.id} for each in tracers if isinstance(each, Auction)],
        "q2": [each._asdict() for each in tracers if isinstance(each, Bid)],
    }
    return pa.Table.from_pylist(rows[query])


@pytest.mark.parametrize(("query", "count", "shown"), [("q2", 10, 5), ("q3", 10, 10)])
def test_tracer_rows_count_the_tracer_events(query: str, count: int, shown: int) -> None:
    """Half of the bids are on the auction that q2 is traced by."""
    settings = settings_of(query)
    (view,) = workload_in(settings).traced_views
    numbers = [n for n in range(100) if n // 2 % PARTITIONS == 0][:count]
    tracers = [tracer(n, PARTITIONS, is_auction=query == "q3")[1] for n in numbers]
    keys = view.keys(settings)
    rows = rows_of(query, tracers)
    of_tracers = rows.filter(pc.is_in(rows[view.key], pa.array(keys)))
    assert view.values_in(of_tracers, keys) == [shown, *[-1] * (PARTITIONS - 1)]


def test_the_reserved_rows_of_q3_are_no_tracer_events() -> None:
    (view,) = workload_in(settings_of("q3")).traced_views
    own = Reserved.of(0)
    rows = pa.Table.from_pylist([{"name": own.name, "id": own.auctions[0]}])
    assert view.values_in(rows, view.keys(settings_of("q3")))[0] == 0


def test_the_harness_looks_for_the_reserved_ids() -> None:
    settings = settings_of("q0,q4,q16")
    keys = {view.view: view.keys(settings) for view in workload_in(settings).traced_views}
    reserved = [Reserved.of(partition) for partition in range(PARTITIONS)]
    assert keys["q0"] == [each.auctions[0] for each in reserved]
    assert keys["q4"] == [each.event(2).category for each in reserved]  # type: ignore[union-attr]
    assert keys["q16"] == [each.name for each in reserved]


def test_only_selected_queries_are_views_and_unknown_ones_are_refused() -> None:
    settings = settings_of("q4, q0,q4")
    assert settings.model_dump()["nexmark_queries"] == "q0,q4"
    assert [view.name for view in workload_in(settings).views] == ["q0", "q4"]
    with pytest.raises(UsageError, match="q6"):
        load({"NEXMARK_QUERIES": "q0,q6"})


def test_there_are_always_tracer_events_since_they_show_the_progress() -> None:
    of = {"WORKLOAD": "nexmark"}
    assert load(of).tracer_events_per_second > 0
    assert load({**of, "TRACER_EVENTS_PER_SECOND": "7"}).tracer_events_per_second == 7
    assert load().tracer_events_per_second == 0


def test_q3_has_tracer_rows_only_alone() -> None:
    assert traced("q3") == ["q3"]
    assert traced("q0,q3") == ["q0"]
    assert traced("q3,q15") == ["q15"]


@pytest.mark.parametrize("query", [view.name for view in WORKLOAD.views])
def test_each_query_shows_its_progress_alone(query: str) -> None:
    assert traced(query) == [query]
    for engine in ("flink", "dh"):
        checks.require_raced_on(find_engine(engine), settings_of(query))


def test_the_calibration_engine_shows_only_the_progress_of_its_own_query() -> None:
    cal = find_engine("cal")
    checks.require_raced_on(cal, settings_of("q1"))
    for query in ("q0", "q5"):
        with pytest.raises(UsageError, match="q1"):
            checks.require_raced_on(cal, settings_of(query))


@pytest.mark.parametrize("partitions", [1, 3, 6, 50])
def test_bids_are_counted_by_the_sequence(partitions: int) -> None:
    share, at, bids = Share(42, partitions - 1, partitions), 0, 0
    tracers = iter(n for n in range(200 * partitions) if n // 2 % partitions == partitions - 1)
    for position in range(1, 1_000):
        if position % 7:
            bids += at >= RESERVED_EVENTS and is_bid(share.number(at))
            at += 1
            continue
        bids += 1
        number = next(tracers)
        assert bids_until(position, number, partitions - 1, partitions) == bids


def test_windows_need_time_at_saturation() -> None:
    for queries, expected in (("q0,q15", (0, 0)), ("q0,q5", (2, 120)), ("q5,q7", (10, 120))):
        workload = workload_in(settings_of(queries))
        assert (workload.results_every_s, workload.least_saturation_s) == expected


def test_an_engine_without_programs_is_refused_and_a_missing_one_named_with_those_that_exist(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="nexmark"):
        checks.require_raced_on(find_engine("mz"), load({"WORKLOAD": "nexmark"}))
    (tmp_path / "nexmark").mkdir()
    for name in ("nexmark", "q2"):
        (tmp_path / "nexmark" / f"{name}.flink.sql").touch()
    monkeypatch.setattr(plugins, "SCRIPTS", tmp_path)
    with pytest.raises(UsageError, match=r"no program for q4 .* q2"):
        checks.require_raced_on(find_engine("flink"), settings_of("q2,q4"))


def test_runs_of_different_queries_are_different_work() -> None:
    runs = [settings_of(query) for query in ("q0", "q4")]
    works = [work_of(each.model_dump()) for each in runs]
    assert works == ["nexmark q0", "nexmark q4"]
    assert run_label("native", works[1]) == "native, nexmark q4"
    assert work_of(load().model_dump()) == work_of({}) == "shop"


def test_queries_are_chosen_for_the_workload_that_has_them() -> None:
    chosen = overrides("nexmark", "q4")
    assert chosen == {"WORKLOAD": "nexmark", "NEXMARK_QUERIES": "q4"}
    with pytest.raises(UsageError, match="--queries"):
        overrides("ads", "q4")
