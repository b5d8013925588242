"""The process that feeds PostgreSQL: topics into the tables of scripts/demo.pg.sql, in batches.

    python -m engines.pg.feed.consumer

One batch is one transaction: its rows, how far they go in each topic, and what is counted of them
by `pageviews_progress`. What was counted is notified by that transaction, on channels named as the
two views: `pageviews_progress` (`<partition> <total> <max_received_at>`) for every partition of the
batch, then `pageviews_summary` (`<total> <max_received_at>`).

The environment says where everything is (see engines/pg/services/pgfeed.py); PGFEED_READY_FILE is
written once all topics have been found. It waits for the tables, and begins anew with new ones.
"""

import io
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from engines.pg.feed.avro import Avro
from engines.pg.feed.sink import TOPIC as SINK_TOPIC
from engines.pg.feed.sink import Sink

PAGEVIEWS, FLAGGED = "pageviews", "dd_flagged_profiles"
SHOP = {f"mysql.shop.{table}": table for table in ("users", "items", "purchases")}
OWN = (FLAGGED, SINK_TOPIC)  # made here, if nobody did
TOPICS = (PAGEVIEWS, *SHOP, *OWN)
BATCH = 20_000
ANSWER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.05
FLAG = re.compile(rb'"?([0-9]{1,18})"?')

PAGEVIEW = pa.schema(
    [
        ("user_id", pa.int64()),
        ("url", pa.string()),
        ("channel", pa.string()),
        ("received_at", pa.int64()),
    ]
)
COPY = """
COPY pageviews (partition, "offset", user_id, url, channel, received_at) FROM STDIN (FORMAT csv)"""
COUNT = """
WITH changed AS (
    INSERT INTO pageviews_progress AS now
    SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[])
    ON CONFLICT (partition) DO UPDATE SET
        total = now.total + excluded.total,
        max_received_at = greatest(now.max_received_at, excluded.max_received_at)
    RETURNING partition, total, max_received_at
)
SELECT pg_notify('pageviews_progress', concat_ws(' ', partition, total, max_received_at))
FROM changed"""
TELL = """
SELECT pg_notify('pageviews_summary', concat_ws(' ', total, max_received_at))
FROM pageviews_summary"""
FLAGS = "INSERT INTO dd_flagged_profiles SELECT unnest(%s::bigint[]) ON CONFLICT DO NOTHING"
MADE = "SELECT to_regclass('feed_positions') IS NOT NULL"
POSITIONS = "SELECT topic, partition, next_offset FROM feed_positions"
GOT_TO = """
INSERT INTO feed_positions SELECT * FROM unnest(%s::text[], %s::integer[], %s::bigint[])
ON CONFLICT (topic, partition) DO UPDATE SET next_offset = excluded.next_offset"""


def pageviews_of(messages: Sequence[Message]) -> "pa.Table":
    """A batch of pageviews as columns: partition, offset, and the fields of their JSON. No pageview
    is looked at in Python.

    Raises:
        ValueError: one is no JSON, or not of these types.
    """
    parsed = pyarrow.json.read_json(
        io.BytesIO(b"\n".join(message.value() or b"" for message in messages)),
        pyarrow.json.ReadOptions(use_threads=False),
        pyarrow.json.ParseOptions(explicit_schema=PAGEVIEW, unexpected_field_behavior="ignore"),
    )
    if parsed.num_rows != len(messages):
        raise ValueError(f"{len(messages)} messages hold {parsed.num_rows} pageviews")
    return parsed.add_column(0, "partition", [[m.partition() for m in messages]]).add_column(
        1, "offset", [[m.offset() for m in messages]]
    )


def bring_pageviews(cursor: "psycopg.Cursor[Any]", messages: Sequence[Message]) -> None:
    """Into their table, and count them."""
    table = pageviews_of(messages)
    received_at = table["received_at"].cast(pa.timestamp("ms", "UTC"))
    rows = io.BytesIO()
    pyarrow.csv.write_csv(
        table.set_column(5, "received_at", received_at),
        rows,
        pyarrow.csv.WriteOptions(include_header=False),
    )
    with cursor.copy(COPY) as copy:
        copy.write(rows.getbuffer())
    counted = table.group_by("partition").aggregate(
        [("received_at", "count"), ("received_at", "max")]
    )
    names = ("partition", "received_at_count", "received_at_max")
    cursor.execute(COUNT, [counted[name].to_pylist() for name in names])
    cursor.execute(TELL)


def bring_changes(
    cursor: "psycopg.Cursor[Any]", table: str, changes: Iterable[tuple[int, Any]]
) -> None:
    """Of each id the last row, or none if it was deleted, into a table; by the order of changes."""
    last = dict(changes)
    rows = [{**row, "id": number} for number, row in last.items() if row is not None]
    cursor.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", [list(last)])  # noqa: S608  # ours
    cursor.execute(
        f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, %s)",  # noqa: S608
        [json.dumps(rows, default=str)],  # a decimal as its digits
    )


def shop_changes(messages: Iterable[Message], avro: Avro) -> list[tuple[int, Any]]:
    """What Debezium's envelopes say: id, and the row as it is now, None if it was deleted."""
    envelopes = [avro.decode(message.value() or b"") for message in messages]
    return [((each["after"] or each["before"])["id"], each["after"]) for each in envelopes]


def sink_changes(messages: Iterable[Message], avro: Avro) -> list[tuple[int, Any]]:
    """What the sink's messages say: id, and the row, None if it is no longer in the view."""
    return [
        (avro.decode(message.key() or b"")["id"], value and avro.decode(value))
        for message in messages
        for value in [message.value()]
    ]


def flags_of(messages: Iterable[Message]) -> list[int]:
    """The ids among what people have sent."""
    found = [FLAG.fullmatch(message.value() or b"") for message in messages]
    return [int(match[1]) for match in found if match]


def by_topic(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """A batch by topic, in its order.

    Raises:
        RuntimeError: the broker sent an error in their stead.
    """
    found: dict[str, list[Message]] = {}
    for message in messages:
        if error := message.error():
            raise RuntimeError(f"{message.topic()}: {error}")
        found.setdefault(str(message.topic()), []).append(message)
    return found


def bring(
    connection: "psycopg.Connection[Any]", messages: Sequence[Message], avro: Avro
) -> set[str]:
    """One batch, one transaction; the topics that were in it."""
    batch = by_topic(messages)
    with connection.transaction(), connection.cursor() as cursor:
        for topic in batch.keys() & SHOP.keys():
            bring_changes(cursor, SHOP[topic], shop_changes(batch[topic], avro))
        if sent := batch.get(SINK_TOPIC):
            bring_changes(cursor, "hvu_test", sink_changes(sent, avro))
        if flagged := batch.get(FLAGGED):
            cursor.execute(FLAGS, [flags_of(flagged)])
        if pageviews := batch.get(PAGEVIEWS):
            bring_pageviews(cursor, pageviews)
        reached = {(m.topic(), m.partition()): int(m.offset() or 0) + 1 for m in messages}
        columns = [[topic for topic, _ in reached], [number for _, number in reached]]
        cursor.execute(GOT_TO, [*columns, list(reached.values())])
    return set(batch)


def find_topics(bootstrap: str) -> dict[str, int]:
    """Wait for the topics, and make those that are made here; how many partitions each has."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    while True:
        there = admin.list_topics(timeout=ANSWER_WITHIN_S).topics
        if there.keys() >= set(TOPICS):
            return {topic: len(there[topic].partitions) for topic in TOPICS}
        mine = [NewTopic(topic, 1, 1) for topic in OWN if topic not in there]
        for made in (admin.create_topics(mine) if mine else {}).values():
            made.result(ANSWER_WITHIN_S)
        time.sleep(LOOK_EVERY_S)


def consumer_at(
    bootstrap: str, partitions: Mapping[str, int], positions: Mapping[tuple[str, int], int]
) -> Consumer:
    """A consumer that reads every topic from where the tables stand."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "pgfeed",  # librdkafka wants one; nothing is committed there
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign(
        [
            TopicPartition(topic, number, positions.get((topic, number), 0))
            for topic, count in partitions.items()
            for number in range(count)
        ]
    )
    return consumer


def feed(
    connection: "psycopg.Connection[Any]",
    consumer: Consumer,
    avro: Avro,
    sink: Sink,
    batch_s: float,
) -> None:
    """Bring batches to no end.

    Raises:
        psycopg.errors.UndefinedTable: the tables have gone.
    """
    while True:
        messages = consumer.consume(BATCH, batch_s)
        if messages and bring(connection, messages, avro) & SHOP.keys():
            sink.shop_has_changed()
        sink.send_if_due(connection)


def wait_for_tables(connection: "psycopg.Connection[Any]") -> dict[tuple[str, int], int]:
    """Until the script has been run; how far each topic has been read."""
    while connection.execute(MADE).fetchone() != (True,):
        time.sleep(LOOK_EVERY_S)
    rows = connection.execute(POSITIONS).fetchall()
    return {(topic, number): reached for topic, number, reached in rows}


def main() -> None:
    """Read the environment, find the topics, and feed whatever tables there are."""
    bootstrap, avro = os.environ["KAFKA_BOOTSTRAP"], Avro(os.environ["SCHEMA_REGISTRY_URL"])
    batch_s = int(os.environ["POSTGRES_BATCH_MS"]) / 1000
    partitions = find_topics(bootstrap)
    with psycopg.connect(autocommit=True) as connection:
        Path(os.environ["PGFEED_READY_FILE"]).touch()
        while True:
            consumer = consumer_at(bootstrap, partitions, wait_for_tables(connection))
            print("the tables are there: reading", flush=True)
            try:
                feed(connection, consumer, avro, Sink(bootstrap, avro), batch_s)
            except psycopg.errors.UndefinedTable as gone:
                print(f"the tables are gone, waiting for others: {gone}", flush=True)
            finally:
                consumer.close()


if __name__ == "__main__":
    main()
