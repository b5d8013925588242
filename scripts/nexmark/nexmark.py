# Nexmark, kept up to date by Deephaven: the topic, and the tables that all queries read.
#
# Paste it into the IDE, then a query such as q4.py, whose result is the table `q4`. Or load both
# whole: exec(open('/scripts/nexmark/nexmark.py').read()), then the same with q4.py.
# The topic must exist: `./race up dh --workload nexmark --queries q4` creates it before it returns.
#
# Queries are those of nexmark/nexmark; docs/nexmark.md describes the workload. `dateTime` and
# `expires` are epoch milliseconds, as in the messages. A column can't be named like a keyword of
# Java, so q4's column `final` is `final_` here.

import json
import os

import jpy
from deephaven import agg
from deephaven.agg import Aggregation
from deephaven.execution_context import get_exec_ctx
from deephaven.json import jackson
from deephaven.stream import blink_to_append_only
from deephaven.stream.kafka import consumer as kc
from deephaven.table import Table
from deephaven.update_graph import shared_lock

# A server that others use too gets its own values of these variables (docs/own-parts.md).
ENVIRONMENT = globals().get("ENVIRONMENT", os.environ)
KAFKA = ENVIRONMENT.get("KAFKA_BOOTSTRAP", "redpanda:9092")
WATERMARK_DELAY_MS = int(ENVIRONMENT.get("NEXMARK_WATERMARK_DELAY_MS", "0"))

# For a Kafka that others use too: further properties of clients, and the prefix of all topics.
CLIENT = json.loads(ENVIRONMENT.get("KAFKA_JAVA_CONFIG", "{}"))
PREFIX = ENVIRONMENT.get("KAFKA_TOPIC_PREFIX", "")

# ---- Events --------------------------------------------------------------------------------------
# A message has one of these records. All fields are required.
PERSON = {
    "id": int,
    "name": str,
    "emailAddress": str,
    "creditCard": str,
    "city": str,
    "state": str,
    "extra": str,
}
AUCTION = {
    "id": int,
    "itemName": str,
    "description": str,
    "initialBid": int,
    "reserve": int,
    "expires": int,
    "seller": int,
    "category": int,
    "extra": str,
}
BID = {"auction": int, "bidder": int, "price": int, "channel": str, "url": str, "extra": str}
EVENT = {"event_type": int, "person": PERSON, "auction": AUCTION, "bid": BID, "dateTime": int}

# There are some thousand different ones, and sharing their strings saves memory.
SHARED = ("channel", "url")

# A message that is not JSON, or has a text for a number, would end all tables. This processor lets
# it be a row without values: if a chunk of messages is refused, it parses them one by one. It is
# in Groovy, which Deephaven's server contains, so that it is compiled like Java.
LENIENT = """
import io.deephaven.chunk.ObjectChunk
import io.deephaven.chunk.WritableChunk
import io.deephaven.processor.ObjectProcessor

@groovy.transform.CompileStatic
class Lenient implements ObjectProcessor<byte[]> {
    private final ObjectProcessor<byte[]> strict
    private final ObjectChunk empty = ObjectChunk.chunkWrap(["{}".bytes] as Object[])

    Lenient(ObjectProcessor<byte[]> strict) { this.strict = strict }

    List outputTypes() { strict.outputTypes() }

    void processAll(ObjectChunk messages, List columns) {
        int size = ((WritableChunk) columns[0]).size()
        try {
            strict.processAll(messages, columns)
        } catch (Exception refused) {
            columns.each { ((WritableChunk) it).size = size }
            if (messages.size() == 1) {
                strict.processAll(empty, columns)
            } else {
                for (int n = 0; n < messages.size(); n++) processAll(messages.slice(n, 1), columns)
            }
        }
    }
}
new Lenient(strict)
"""


def lenient(event: dict) -> kc.KeyValueSpec:
    """Return how messages are parsed. Invalid ones become rows without values."""
    of_bytes = jpy.get_type("io.deephaven.qst.type.Type").byteType().arrayType()
    strict = jackson.provider(event).named(of_bytes)
    groovy = jpy.get_type("groovy.lang.GroovyShell")()
    groovy.setVariable("strict", strict.processor())
    consume = jpy.get_type("io.deephaven.kafka.KafkaTools$Consume")
    return kc.KeyValueSpec(consume.objectProcessorSpec(groovy.evaluate(LENIENT), strict.names()))


def records(event_type: int, name: str) -> Table:
    """Return a table with all records of a kind. Messages that lack a field of it are left out."""
    fields = {field: f"{name}_{field}" for field in EVENT[name]}
    columns = [
        f"{field} = {column}{'.intern()' * (field in SHARED)}" for field, column in fields.items()
    ]
    required = [f"{column} != null" for column in (*fields.values(), "dateTime")]
    return blink_to_append_only(
        nexmark.where([f"event_type = {event_type}", *required]).view([*columns, "dateTime"])
    )


# `nexmark` is a blink table: it contains only the events of one update cycle. `person`, `auction`
# and `bid` keep all rows: joins need earlier ones, and rows that arrive before a query is pasted
# would be lost otherwise. The lock prevents an update cycle between the consumer's start and the
# creation of these tables.
with shared_lock(get_exec_ctx().update_graph):
    nexmark = kc.consume(
        {
            **CLIENT,
            "bootstrap.servers": KAFKA,
            "deephaven.partition.column.name": "partition",
            "deephaven.offset.column.name": "",
            "deephaven.timestamp.column.name": "",
        },
        PREFIX + "nexmark",
        offsets=kc.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=kc.KeyValueSpec.IGNORE,
        value_spec=lenient(EVENT),
        table_type=kc.TableType.blink(),
    )
    person = records(0, "person")
    auction = records(1, "auction")
    bid = records(2, "bid")
    newest = nexmark.agg_by(agg.max_("at_ms = dateTime"), "partition")

# ---- Windows -------------------------------------------------------------------------------------
# `watermark`: one row with the time up to which no more events will arrive, since each partition is
# in the order of time.
watermark = newest.agg_by(agg.min_("at_ms")).update_view(f"at_ms = at_ms - {WATERMARK_DELAY_MS}L")


def closed(rows: Table) -> Table:
    """Return the rows whose window ends, at `ends_ms`, at or before the watermark."""
    windows = rows.select_distinct("ends_ms").natural_join(watermark, [], "at_ms")
    return rows.where_in(windows.where("ends_ms <= at_ms").view("ends_ms"), "ends_ms")


# ---- Ranks and days ------------------------------------------------------------------------------
# Bids by price, in q15 to q17.
RANKS = {
    "rank1": ["price < 10000"],
    "rank2": ["price >= 10000", "price < 1000000"],
    "rank3": ["price >= 1000000"],
}
# Days are in UTC. Rows are grouped by the first millisecond of the day, which is fast.
DAY_MS = "day_ms = lowerBin(dateTime, 86400000L)"
DAY = "day = java.time.Instant.ofEpochMilli(day_ms).toString().substring(0, 10)"


def bid_counts() -> list[Aggregation]:
    """Return the numbers of bids: of all, and of those of each rank."""
    by_rank = [agg.count_where(f"{rank}_bids", where) for rank, where in RANKS.items()]
    return [agg.count_("total_bids"), *by_rank]


def by_rank(column: str) -> list[str]:
    """Return formulas of a column for each rank. It is null in bids of other ranks."""
    return [
        f"{rank}_{column} = {' && '.join(where)} ? {column} : NULL_LONG"
        for rank, where in RANKS.items()
    ]


def distinct_counts(column: str) -> Aggregation:
    """Return the numbers of distinct values of a column: in all bids, and in those of each rank."""
    of_ranks = [f"{rank}_{column}s = {rank}_{column}" for rank in RANKS]
    return agg.count_distinct([f"total_{column}s = {column}", *of_ranks])


# Deephaven counts no distinct values as null.
ZEROS = [
    f"{rank}_{counted} = isNull({rank}_{counted}) ? 0L : {rank}_{counted}"
    for rank in RANKS
    for counted in ("bidders", "auctions")
]
