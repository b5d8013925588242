"""Tests of the queries' reference SQL on generated events, against the same computation in Python,
and of the defects that it reveals."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
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
from racetrack.workloads.nexmark.load.texts import prepare
from racetrack.workloads.nexmark.load.tracers import Reserved, tracer

Row = dict[str, Any]
PARTITIONS, EVENTS, EVERY_MS, SEED = 3, 900, 30, 42
START_MS = 1_774_155_868_000  # not the beginning of a window
DELAY_MS = 1_000
RANKS = {"total": (0, 10**9), "rank1": (0, 10**4), "rank2": (10**4, 10**6), "rank3": (10**6, 10**9)}
BID = ("auction", "bidder", "price", "dateTime", "extra")
LONG_BID = (*BID, "channel", "url")
AUCTION = ("itemName", "description", "initialBid", "reserve", "expires", "seller", "category")
MOST_FINDINGS = 5


@cache
def messages() -> list[Row]:
    """Return 27 s of messages, with tracer events, and with ties for the highest price."""
    texts, found = prepare(SEED), []
    for partition in range(PARTITIONS):
        share = Share(SEED, partition, PARTITIONS)
        share.schedule = Schedule.starting(0, 100_000, PARTITIONS * 1000 * 10**9)
        records: list[Any] = [Reserved.of(partition).event(n) for n in range(RESERVED_EVENTS)]
        at = [START_MS + n * EVERY_MS for n in range(EVENTS)]
        records += [event(share, n, texts, at[n]) for n in range(RESERVED_EVENTS, EVENTS)]
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


def picked(row: Row, *names: str) -> Row:
    return {name: row[name] for name in names}


def day_of(row: Row) -> str:
    return f"{datetime.fromtimestamp(row['dateTime'] / 1000, UTC):%Y-%m-%d}"


def minute_of(row: Row) -> str:
    return f"{datetime.fromtimestamp(row['dateTime'] / 1000, UTC):%H:%M}"


def closed_ms() -> int:
    newest = [max(m["dateTime"] for m in messages() if m["partition"] == p) for p in range(3)]
    return int(min(newest)) - DELAY_MS


def counts(bids: list[Row], *kinds: str) -> Row:
    found = {}
    for rank, (low, high) in RANKS.items():
        within = [b for b in bids if low <= b["price"] < high]
        found[f"{rank}_bids"] = len(within)
        for kind in kinds:
            found[f"{rank}_{kind}s"] = len({b[kind] for b in within})
    return found


def groups(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return found


def won() -> list[tuple[Row, Row]]:
    """Return each auction with its winning bid."""
    of, pairs = groups(records("bid"), "auction"), []
    for a in records("auction"):
        valid = [b for b in of[a["id"],] if a["dateTime"] <= b["dateTime"] <= a["expires"]]
        if valid:
            pairs.append((a, min(valid, key=lambda b: (-b["price"], b["dateTime"]))))
    return pairs


def windowed() -> dict[str, list[Row]]:
    """Return the rows of the queries with windows."""
    bids, closed = records("bid"), closed_ms()
    num = Counter(
        (end, b["auction"])
        for b in bids
        for end in range((b["dateTime"] // 2000 + 1) * 2000, b["dateTime"] + 10_001, 2000)
    )
    most = {end: max(n for (at, _), n in num.items() if at == end) for end, _ in num}
    by_window = defaultdict(list)
    for b in bids:
        by_window[b["dateTime"] // 10_000 * 10_000 + 10_000].append(b["price"])
    opened = {(a["seller"], a["dateTime"] // 10_000) for a in records("auction")}
    return {
        "q5": [
            {"auction": auction, "num": n, "starttime": end - 10_000}
            for (end, auction), n in num.items()
            if n == most[end] and end <= closed
        ],
        "q7": [
            picked(b, *BID)
            for end, prices in by_window.items()
            for b in bids
            if end <= closed and b["price"] == max(prices) and end - 10_000 <= b["dateTime"] <= end
        ],
        "q8": [
            {"id": p["id"], "name": p["name"], "stime": p["dateTime"] // 10_000 * 10_000}
            for p in records("person")
            if (p["id"], p["dateTime"] // 10_000) in opened
            and p["dateTime"] // 10_000 * 10_000 + 10_000 <= closed
        ],
    }


def joined() -> dict[str, list[Row]]:
    """Return the rows of the queries that join bids, auctions and persons."""
    sellers = {p["id"]: p for p in records("person") if p["state"] in ("OR", "ID", "CA")}
    auctions = {a["id"]: a for a in records("auction")}
    prices = defaultdict(list)
    for a, b in won():
        prices[a["category"]].append(b["price"])
    return {
        "q3": [
            {**picked(sellers[a["seller"]], "name", "city", "state"), "id": a["id"]}
            for a in auctions.values()
            if a["category"] == 10 and a["seller"] in sellers
        ],
        "q4": [{"id": key, "final": sum(of) // len(of)} for key, of in prices.items()],
        "q9": [
            {
                **picked(a, "id", "dateTime", "extra", *AUCTION),
                **picked(b, "auction", "bidder", "price"),
                "bid_dateTime": b["dateTime"],
                "bid_extra": b["extra"],
            }
            for a, b in won()
        ],
        "q20": [
            {
                **picked(b, "auction", "bidder", "price", "channel", "url"),
                **picked(a, *AUCTION),
                **{f"bid_{name}": b[name] for name in ("dateTime", "extra")},
                **{f"auction_{name}": a[name] for name in ("dateTime", "extra")},
            }
            for b in records("bid")
            for a in [auctions.get(b["auction"], {})]
            if a.get("category") == 10
        ],
    }


def grouped() -> dict[str, list[Row]]:
    """Return the rows of the queries that group bids."""
    bids = [{**b, "day": day_of(b), "minute": minute_of(b)} for b in records("bid")]
    latest: dict[tuple[int, int], Row] = {}
    for b in bids:
        key = b["bidder"], b["auction"]
        if key not in latest or b["dateTime"] > latest[key]["dateTime"]:
            latest[key] = b
    top = [
        {**picked(b, *LONG_BID), "rank_number": rank}
        for of in groups(bids, "auction").values()
        for rank, b in enumerate(sorted(of, key=lambda b: -b["price"])[:10], 1)
    ]
    both = ("bidder", "auction")
    return {
        "q15": [{"day": day, **counts(of, *both)} for (day,), of in groups(bids, "day").items()],
        "q16": [
            {
                "channel": channel,
                "day": day,
                "minute": max(b["minute"] for b in of),
                **counts(of, *both),
            }
            for (channel, day), of in groups(bids, "channel", "day").items()
        ],
        "q17": [
            {
                "auction": auction,
                "day": day,
                **counts(of),
                "min_price": min(b["price"] for b in of),
                "max_price": max(b["price"] for b in of),
                "avg_price": sum(b["price"] for b in of) // len(of),
                "sum_price": sum(b["price"] for b in of),
            }
            for (auction, day), of in groups(bids, "auction", "day").items()
        ],
        "q18": [picked(b, *LONG_BID) for b in latest.values()],
        "q19": top,
    }


@cache
def results() -> dict[str, list[Row]]:
    """Return the rows of each view in a correct engine, computed in Python."""
    bids = records("bid")
    return {
        "q0": [picked(b, *BID) for b in bids],
        "q1": [{**picked(b, *BID), "price": Decimal(908 * b["price"]) / 1000} for b in bids],
        "q2": [picked(b, "auction", "price") for b in bids if b["auction"] % 123 == 0],
        "q22": [
            {
                **picked(b, "auction", "bidder", "price", "channel"),
                **{f"dir{n}": b["url"].split("/")[2 + n] for n in (1, 2, 3)},
            }
            for b in bids
        ],
        **windowed(),
        **joined(),
        **grouped(),
    }


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


def test_all_queries_have_results() -> None:
    assert results().keys() == {view.name for view in WORKLOAD.views}
    assert all(results().values())


@pytest.mark.parametrize("view", [view.name for view in WORKLOAD.views])
def test_a_view_of_a_faultless_engine_is_right(db: duckdb.DuckDBPyConnection, view: str) -> None:
    found = judged(db, view, results()[view])
    assert found.right, found.findings


@pytest.mark.parametrize("query", QUERIES)
def test_a_lost_row_a_row_too_many_and_a_wrong_value_are_found(
    db: duckdb.DuckDBPyConnection, query: str
) -> None:
    first, *others = results()[query]
    column = next(name for name in ("num", "price", "final", "total_bids", "id") if name in first)
    wrong = {**first, column: first[column] + 1}
    for rows in (others, [first, first, *others], [wrong, *others]):
        assert not judged(db, query, rows or [wrong]).right


def test_tied_bids_are_interchangeable(db: duckdb.DuckDBPyConnection) -> None:
    rows = [row for row in results()["q19"] if row["price"] != 10**8]
    tied = groups([row for row in results()["q19"] if row["price"] == 10**8], "auction")
    assert all(len(of) == 3 for of in tied.values())
    others = [{**row, "rank_number": 4 - row["rank_number"]} for of in tied.values() for row in of]
    assert judged(db, "q19", rows + others).right
    wrong = [{**row, "rank_number": row["rank_number"] + 1} for row in others]
    assert judged(db, "q19", rows + wrong).different


def test_of_the_bids_in_the_latest_millisecond_any_is_right(db: duckdb.DuckDBPyConnection) -> None:
    newest: dict[tuple[int, int], Row] = {}
    for b in records("bid"):
        key = b["bidder"], b["auction"]
        if key not in newest or b["dateTime"] >= newest[key]["dateTime"]:
            newest[key] = b
    rows = [picked(b, *LONG_BID) for b in newest.values()]
    assert rows != results()["q18"]
    assert judged(db, "q18", rows).right


def test_a_late_window_is_found(db: duckdb.DuckDBPyConnection) -> None:
    """The engine has dropped bids of a window as late."""
    rows = results()["q5"]
    late = [{**row, "num": row["num"] - 1} for row in rows]
    assert not judged(db, "q5", late).right
