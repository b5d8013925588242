"""The harness's part of Nexmark: its topic, the results of the queries, and their tracer rows."""

from collections.abc import Mapping
from pathlib import Path

from racetrack.workloads.contract import (
    DECIMAL,
    INTEGER,
    TEXT,
    TIME,
    ColumnType,
    NestedRecord,
    Query,
    SourceTopic,
    TopN,
    TracedView,
    View,
    Windows,
    Workload,
    without_key,
)
from racetrack.workloads.message import USUAL_INTEGER, USUAL_TEXT, USUAL_TIME, usual_json
from racetrack.workloads.nexmark.settings import QUERIES

_PERSON = NestedRecord(
    "person",
    {
        "id": int,
        "name": str,
        "emailAddress": str,
        "creditCard": str,
        "city": str,
        "state": str,
        "extra": str,
    },
)
_AUCTION = NestedRecord(
    "auction",
    {
        "id": int,
        "itemName": str,
        "description": str,
        "initialBid": int,
        "reserve": int,
        "expires": int,
        "seller": int,
        "category": int,
        "extra": str,
    },
)
_BID = NestedRecord(
    "bid",
    {"auction": int, "bidder": int, "price": int, "channel": str, "url": str, "extra": str},
)
_RECORDS = (_PERSON, _AUCTION, _BID)
_USUAL = {int: USUAL_INTEGER, str: USUAL_TEXT}


def _usual(kind: int, record: NestedRecord) -> str:
    nested = usual_json(**{name: _USUAL[type_] for name, type_ in record.fields.items()})
    return usual_json(event_type=str(kind), **{record.name: nested}, dateTime=USUAL_TIME)


EVENTS = SourceTopic(
    name="nexmark",
    table="nexmark",
    event="event",
    usual=f"(?:{'|'.join(_usual(kind, record) for kind, record in enumerate(_RECORDS))})",
    fields={"event_type": int, "dateTime": int},
    due_field="dateTime",
    kind_field="event_type",
    records=_RECORDS,
)


def _struct(record: NestedRecord) -> str:
    types = {int: "BIGINT", str: "VARCHAR"}
    fields = ", ".join(f'"{name}" {types[type_]}' for name, type_ in record.fields.items())
    return f"STRUCT({fields})"


# The helper views have the columns of the reference's views. Windows that end at or before
# `source.nexmark_closed` are closed: each partition has an event that is later by the watermark's
# delay.
_CREATE = f"""
CREATE TABLE source.nexmark (
    "partition" INTEGER, "offset" BIGINT, event_type BIGINT, "dateTime" BIGINT,
    person {_struct(_PERSON)}, auction {_struct(_AUCTION)}, bid {_struct(_BID)}
);
CREATE VIEW source.nexmark_person AS
SELECT "dateTime", unnest(person) FROM source.nexmark WHERE event_type = 0;
CREATE VIEW source.nexmark_auction AS
SELECT "dateTime", unnest(auction) FROM source.nexmark WHERE event_type = 1;
CREATE VIEW source.nexmark_bid AS
SELECT "dateTime", unnest(bid),
    strftime(make_timestamp_ms("dateTime"), '%Y-%m-%d') AS "day",
    strftime(make_timestamp_ms("dateTime"), '%H:%M') AS "minute"
FROM source.nexmark WHERE event_type = 2;
CREATE VIEW source.nexmark_closed AS
SELECT min(newest) - getvariable('nexmark_watermark_delay_ms')::BIGINT AS at_ms
FROM (SELECT max("dateTime") AS newest FROM source.nexmark GROUP BY "partition");
"""  # noqa: S608 - our own names

_Columns = Mapping[str, ColumnType]
_BID_COLUMNS: _Columns = {
    "auction": INTEGER,
    "bidder": INTEGER,
    "price": INTEGER,
    "dateTime": TIME,
    "extra": TEXT,
}
_LONG_BID_COLUMNS: _Columns = {**_BID_COLUMNS, "channel": TEXT, "url": TEXT}
_AUCTION_COLUMNS: _Columns = {
    "itemName": TEXT,
    "description": TEXT,
    "initialBid": INTEGER,
    "reserve": INTEGER,
    "expires": TIME,
    "seller": INTEGER,
    "category": INTEGER,
}
_COUNTS = [
    f"{rank}_{what}"
    for what in ("bids", "bidders", "auctions")
    for rank in ("total", "rank1", "rank2", "rank3")
]
_BID_COUNTS = _COUNTS[:4]

VIEWS = (
    without_key("q0", _BID_COLUMNS),
    without_key("q1", {**_BID_COLUMNS, "price": DECIMAL}),
    without_key("q2", {"auction": INTEGER, "price": INTEGER}),
    without_key("q3", {"name": TEXT, "city": TEXT, "state": TEXT, "id": INTEGER}),
    View("q4", ("id",), {"id": INTEGER, "final": INTEGER}),
    without_key("q5", {"auction": INTEGER, "num": INTEGER, "starttime": TIME}),
    without_key("q7", _BID_COLUMNS),
    without_key("q8", {"id": INTEGER, "name": TEXT, "stime": TIME}),
    without_key(
        "q9",
        {
            "id": INTEGER,
            **_AUCTION_COLUMNS,
            "dateTime": TIME,
            "extra": TEXT,
            "auction": INTEGER,
            "bidder": INTEGER,
            "price": INTEGER,
            "bid_dateTime": TIME,
            "bid_extra": TEXT,
        },
        TopN(1, "price", per=("id",)),
    ),
    View("q15", ("day",), {"day": TEXT, **dict.fromkeys(_COUNTS, INTEGER)}, counts="total_bids"),
    View(
        "q16",
        ("channel", "day"),
        {"channel": TEXT, "day": TEXT, "minute": TEXT, **dict.fromkeys(_COUNTS, INTEGER)},
        counts="total_bids",
    ),
    View(
        "q17",
        ("auction", "day"),
        {
            "auction": INTEGER,
            "day": TEXT,
            **dict.fromkeys(_BID_COUNTS, INTEGER),
            **dict.fromkeys(("min_price", "max_price", "avg_price", "sum_price"), INTEGER),
        },
        counts="total_bids",
    ),
    without_key("q18", _LONG_BID_COLUMNS, TopN(1, "dateTime", per=("bidder", "auction"))),
    without_key(
        "q19",
        {**_LONG_BID_COLUMNS, "rank_number": INTEGER},
        TopN(10, "price", per=("auction",)),
        between="rank_number",
    ),
    without_key(
        "q20",
        {
            "auction": INTEGER,
            "bidder": INTEGER,
            "price": INTEGER,
            "channel": TEXT,
            "url": TEXT,
            "bid_dateTime": TIME,
            "bid_extra": TEXT,
            **_AUCTION_COLUMNS,
            "auction_dateTime": TIME,
            "auction_extra": TEXT,
        },
    ),
    without_key(
        "q22",
        {
            "auction": INTEGER,
            "bidder": INTEGER,
            "price": INTEGER,
            "channel": TEXT,
            **dict.fromkeys(("dir1", "dir2", "dir3"), TEXT),
        },
    ),
)

# `racetrack/workloads/nexmark/load/tracers.py` defines the tracer events and the reserved ids.
# Those with even numbers are bids on the partition's first auction, of category 10; the others are
# bids on the second auction, whose category is the partition's own. Their prices count them.
_SPACE, _Q2_STEP = 2**32, 123
_FIRST_AUCTIONS = (_Q2_STEP * _SPACE, 2 * _Q2_STEP * _SPACE)
_OWN_CATEGORIES = (1000, 1)
_NAMES = "tracer-{}"


def _of_bids(
    view: str, column: str = "price", key: str = "auction", by_day: str = ""
) -> TracedView:
    """Return a view in which the bids on the first auctions show."""
    return TracedView(
        view,
        column,
        key,
        _FIRST_AUCTIONS,
        EVENTS.name,
        parity=0,
        is_time=column == "dateTime",
        summed_over=by_day,
    )


# q5, q7 and q8 have no rows of their own for tracer events, since they show windows. While events
# flow, each window has at least one row; in q8, if a new person opens an auction.
def _of_windows(view: str, column: str, every_ms: int) -> TracedView:
    """Return a view of windows of ten seconds."""
    windows = Windows(length_ms=10_000, every_ms=every_ms)
    return TracedView(view, column, "", "", EVENTS.name, is_time=True, windows=windows)


# Of each CYCLE events in the sequence of all partitions, those from BIDS_FROM on are bids. The
# reserved events, with which a partition begins, are none.
_CYCLE, _BIDS_FROM, _RESERVED_EVENTS = 50, 4, 3


def bids_until(position: int, number: int, partition: int, partitions: int) -> int:
    """Return the number of bids among the first `position` messages of a partition, of which the
    last is tracer event `number`, a bid."""
    tracers = number // (2 * partitions) * 2 + number % 2 + 1
    in_sequence = max(position - tracers - _RESERVED_EVENTS, 0)
    are_bids = [(n * partitions + partition) % _CYCLE >= _BIDS_FROM for n in range(_CYCLE)]
    whole, rest = divmod(in_sequence, _CYCLE)
    return tracers + whole * sum(are_bids) + sum(are_bids[:rest])


# For q3 alone, tracer events are auctions.
TRACED_VIEWS = (
    _of_bids("q0"),
    _of_bids("q1", "dateTime"),
    _of_bids("q2"),
    TracedView("q3", "id", "name", _NAMES, EVENTS.name, modulus=_SPACE, alone=True),
    TracedView("q4", "final", "id", _OWN_CATEGORIES, EVENTS.name, parity=1),
    _of_windows("q5", "starttime", 2_000),
    _of_windows("q7", "dateTime", 10_000),
    _of_windows("q8", "stime", 10_000),
    _of_bids("q9", key="id"),
    TracedView("q15", "total_bids", "", "", EVENTS.name, summed_over="day", counts=bids_until),
    TracedView("q16", "total_bids", "channel", _NAMES, EVENTS.name, summed_over="day"),
    _of_bids("q17", "total_bids", by_day="day"),
    _of_bids("q18"),
    _of_bids("q19"),
    _of_bids("q20"),
    _of_bids("q22"),
)

WORKLOAD = Workload(
    name="nexmark",
    topic=EVENTS,
    topics=(),
    stored_bytes=330,
    size_setting="",
    database="",
    tables=(),
    watched_table=None,
    watched_kinds=(),
    rates=("tracer_events_per_second",),
    views=VIEWS,
    traced_views=TRACED_VIEWS,
    # Results with few rows.
    queries=(Query("q4"), Query("q15"), Query("q16")),
    progress="",
    summary="",
    positions="nexmark_tracers",
    scripts="nexmark/nexmark",
    sink=None,
    event_window_ms=None,
    sql=Path(__file__).with_name("views"),
    create=_CREATE,
    selected_by="nexmark_queries",
    selectable=QUERIES,
    variables=("nexmark_watermark_delay_ms",),
    watermark_delay="nexmark_watermark_delay_ms",
)
