"""Tests of the defects that the queries' reference SQL reveals. That it agrees with real engines on
these messages is tested with Deephaven (racetrack/engines/dh/tests/test_nexmark.py) and others."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from loadgen.schedule import Schedule
from racetrack.config import load
from racetrack.verify import sources
from racetrack.verify.compare import Compared, compare
from racetrack.workloads.nexmark.harness import WORKLOAD
from racetrack.workloads.nexmark.load.render import RECORDS
from racetrack.workloads.nexmark.load.sequence import RESERVED_EVENTS, Bid, Share, event
from racetrack.workloads.nexmark.load.tracers import Reserved, tracer
from racetrack.workloads.nexmark.tests.load.test_sequence import SEED, texts

Row = dict[str, Any]
PARTITIONS, EVENTS, EVERY_MS = 3, 900, 30
START_MS = 1_774_155_868_000  # not the beginning of a window
DELAY_MS = 1_000
LONG_BID = ("auction", "bidder", "price", "dateTime", "extra", "channel", "url")
MOST_FINDINGS = 5


@cache
def messages() -> list[Row]:
    """Return 27 s of messages, with tracer events, and with ties for the highest price."""
    found = []
    for partition in range(PARTITIONS):
        share = Share(SEED, partition, PARTITIONS)
        share.schedule = Schedule.starting(0, 100_000, PARTITIONS * 1000 * 10**9)
        records: list[Any] = [Reserved.of(partition).event(n) for n in range(RESERVED_EVENTS)]
        at = [START_MS + n * EVERY_MS for n in range(EVENTS)]
        records += [event(share, n, texts(), at[n]) for n in range(RESERVED_EVENTS, EVENTS)]
        tracers = [tracer(n, PARTITIONS, is_auction=False) for n in range(6 * PARTITIONS)]
        records += [content for of, content in tracers if of == partition]
        auction = next(each for each in records if RECORDS[type(each)] == "auction").id
        records += [Bid(auction, 1 + n // 2, 10**8, "x", "https://a/b/c/d/e", "") for n in range(3)]
        at += [at[-1]] * (len(records) - len(at))
        for offset, (record, at_ms) in enumerate(zip(records, at, strict=True)):
            found.append(_row(partition, offset, record, at_ms))
    return found


def _row(partition: int, offset: int, record: Any, at_ms: int) -> Row:
    kinds = list(RECORDS.values())
    row: Row = {"partition": partition, "offset": offset, "dateTime": at_ms, **dict.fromkeys(kinds)}
    name = RECORDS[type(record)]
    return {**row, "event_type": kinds.index(name), name: record._asdict()}


def records(name: str) -> list[Row]:
    return [{**m[name], "dateTime": m["dateTime"]} for m in messages() if m[name] is not None]


def results(db: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    """Return the rows of a correct engine. Tests of engines compare those of real ones with the
    expected rows; among tied bids, engines have a choice."""
    if query == "q18":
        return latest(records("bid"))
    if query == "q19":
        return highest(records("bid"))
    which = "DISTINCT ON (id) *" if query == "q9" else "*"  # some auctions end with tied bids
    found = db.execute(f"SELECT {which} FROM expected.{query}")  # noqa: S608
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def latest(bids: list[Row]) -> list[Row]:
    """Return the last of the latest bids of each bidder on each auction."""
    found: dict[tuple[int, int], Row] = {}
    for b in sorted(bids, key=lambda b: b["dateTime"]):
        found[b["bidder"], b["auction"]] = {name: b[name] for name in LONG_BID}
    return list(found.values())


def highest(bids: list[Row]) -> list[Row]:
    """Return the ten highest bids on each auction; of those with the same price, the first."""
    by_auction = defaultdict(list)
    for b in bids:
        by_auction[b["auction"]].append({name: b[name] for name in LONG_BID})
    return [
        {**b, "rank_number": rank}
        for of in by_auction.values()
        for rank, b in enumerate(sorted(of, key=lambda b: -b["price"])[:10], 1)
    ]


QUERIES = [view.name for view in WORKLOAD.views if view.name in WORKLOAD.selectable]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Load the messages, and compute the expected content of the views."""
    settings = load({"WORKLOAD": "nexmark", "NEXMARK_WATERMARK_DELAY_MS": str(DELAY_MS)})
    with sources.open_database(WORKLOAD, tmp_path_factory.mktemp("spill")) as opened:
        sources.set_variables(opened, WORKLOAD, settings)
        opened.register("messages", pa.Table.from_pylist(messages()))
        opened.execute("INSERT INTO source.nexmark BY NAME SELECT * FROM messages")
        for view in WORKLOAD.views:
            sources.expect(opened, WORKLOAD, view)
        yield opened


def judged(db: duckdb.DuckDBPyConnection, view: str, rows: list[Row]) -> Compared:
    return compare(db, WORKLOAD.view(view), pa.Table.from_pylist(rows), MOST_FINDINGS)


@pytest.mark.parametrize("query", QUERIES)
def test_a_lost_row_a_row_too_many_and_a_wrong_value_are_found(
    db: duckdb.DuckDBPyConnection, query: str
) -> None:
    first, *others = rows = results(db, query)
    assert judged(db, query, rows).right
    column = next(name for name in ("num", "price", "final", "total_bids", "id") if name in first)
    wrong = {**first, column: first[column] + 1}
    for rows in (others, [first, first, *others], [wrong, *others]):
        assert not judged(db, query, rows or [wrong]).right


def test_tied_bids_are_interchangeable(db: duckdb.DuckDBPyConnection) -> None:
    rows = [row for row in results(db, "q19") if row["price"] != 10**8]
    tied = [row for row in results(db, "q19") if row["price"] == 10**8]
    assert len(tied) == 3 * PARTITIONS
    others = [{**row, "rank_number": 4 - row["rank_number"]} for row in tied]
    assert judged(db, "q19", rows + others).right
    wrong = [{**row, "rank_number": row["rank_number"] + 1} for row in others]
    assert judged(db, "q19", rows + wrong).different


def test_of_the_bids_in_the_latest_millisecond_any_is_right(db: duckdb.DuckDBPyConnection) -> None:
    rows = latest(records("bid")[::-1])
    assert not all(row in results(db, "q18") for row in rows)
    assert judged(db, "q18", rows).right


def test_a_late_window_is_found(db: duckdb.DuckDBPyConnection) -> None:
    """The engine has dropped bids of a window as late."""
    late = [{**row, "num": row["num"] - 1} for row in results(db, "q5")]
    assert not judged(db, "q5", late).right
