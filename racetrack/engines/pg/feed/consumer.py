"""The feeder's process, which copies topics into PostgreSQL's tables in batches.

    python -m racetrack.engines.pg.feed.consumer

A script such as scripts/demo.pg.sql creates the tables; its table `feed_topics` lists the topics
(`plan.py`). Each batch is one transaction, which writes the batch's rows, the new position in each
topic, and the counts of events. The transaction also sends the new counts as notifications, on two
channels that are named like the progress views, for example:

- `pageviews_progress`: `<partition> <total> <max_received_at>`, for every partition of the batch;
- `pageviews_summary`: `<total> <max_received_at>`.

The environment contains the addresses of PostgreSQL (libpq's variables, or PGFEED_URL and
PGFEED_SCHEMA), the broker and the registry (`racetrack/engines/pg/services/pgfeed.py`). The process
creates READY_FILE once PostgreSQL and the broker have answered. Then it waits for the tables, and
starts again if they are replaced.
"""

import io
import json
import os
import re
import struct
import sys
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

from racetrack.engines.pg.feed import plan
from racetrack.engines.pg.feed.plan import Plan, Target
from racetrack.engines.pg.feed.sink import Sink
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.avro import Avro

BATCH = 20_000
ANSWER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.05
# Errors raised if a message can't be decoded or does not fit its table. pyarrow's are ValueErrors.
UNFIT = (
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    struct.error,
    psycopg.DataError,
    psycopg.IntegrityError,
)
FLAG = re.compile(rb'"?([0-9]{1,18})"?')

COPY = "COPY {table} ({columns}) FROM STDIN (FORMAT csv)"
COUNT = """
WITH changed AS (
    INSERT INTO {progress} AS now
    SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[])
    ON CONFLICT (partition) DO UPDATE SET
        total = now.total + excluded.total,
        max_received_at = greatest(now.max_received_at, excluded.max_received_at)
    RETURNING partition, total, max_received_at
)
SELECT pg_notify('{progress}', concat_ws(' ', partition, total, max_received_at))
FROM changed"""
NOTIFY = """
SELECT pg_notify('{summary}', concat_ws(' ', total, max_received_at))
FROM {summary}"""
FLAGS = "INSERT INTO {table} SELECT unnest(%s::bigint[]) ON CONFLICT DO NOTHING"
MADE = "SELECT to_regclass('feed_positions') IS NOT NULL"
POSITIONS = "SELECT topic, partition, next_offset FROM feed_positions"
ONE_COLUMN = "SELECT json_populate_record(NULL::{table}, %s)"
GOT_TO = """
INSERT INTO feed_positions SELECT * FROM unnest(%s::text[], %s::integer[], %s::bigint[])
ON CONFLICT (topic, partition) DO UPDATE SET next_offset = excluded.next_offset"""


class Refused(Exception):
    """A message does not fit its table. This error ends the process."""

    def __init__(self, message: Message, field: str, reason: Exception) -> None:
        place = f"partition={message.partition()}, offset={message.offset()}, field={field}"
        why = str(reason).partition("\n")[0]
        # racetrack/probes/refused_input.py parses this line.
        super().__init__(f"RACETRACK refused topic={message.topic()}, {place}, reason={why}")


def events_of(messages: Sequence[Message], target: Target) -> "pa.Table":
    """Return a batch of events as columns: partition, offset, and those JSON fields that are
    columns of the table. pyarrow parses the JSON, since Python would be too slow.

    Raises:
        ValueError: an event is not JSON, or a field has another type.
    """
    values = [message.value() or b"" for message in messages]
    # pyarrow crashes if the first row is `null`, and skips empty messages.
    if not all(value.lstrip().startswith(b"{") for value in values):
        raise ValueError("JSON parse error: empty, or no object")
    lines = b"\n".join(values)
    parsed = pyarrow.json.read_json(
        io.BytesIO(lines),
        # One block, because blocks would end at line breaks, also at those in a message.
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pyarrow.json.ParseOptions(
            explicit_schema=target.fields, unexpected_field_behavior="ignore"
        ),
    )
    if parsed.num_rows != len(messages):
        raise ValueError(f"{len(messages)} messages hold {parsed.num_rows} {target.table}")
    return parsed.add_column(0, "partition", [[m.partition() for m in messages]]).add_column(
        1, "offset", [[m.offset() for m in messages]]
    )


def bring_events(
    cursor: "psycopg.Cursor[Any]", target: Target, messages: Sequence[Message]
) -> None:
    """Insert events into their table, and add them to the counts."""
    events = events_of(messages, target)
    table, rows = with_times(events, target), io.BytesIO()
    pyarrow.csv.write_csv(table, rows, pyarrow.csv.WriteOptions(include_header=False))
    columns = ", ".join(f'"{name}"' for name in table.column_names)
    with cursor.copy(COPY.format(table=target.table, columns=columns)) as copy:
        copy.write(rows.getbuffer())
    due = target.due
    counted = events.group_by("partition").aggregate([(due, "count"), (due, "max")])
    names = ("partition", f"{due}_count", f"{due}_max")
    cursor.execute(
        COUNT.format(progress=target.progress), [counted[name].to_pylist() for name in names]
    )
    cursor.execute(NOTIFY.format(summary=target.summary))


def with_times(events: "pa.Table", target: Target) -> "pa.Table":
    """Convert epoch milliseconds to timestamps, for columns that are timestamps in the table."""
    for number, name in enumerate(events.column_names):
        if target.columns[name] == plan.TIME:
            times = events[name].cast(pa.timestamp("ms", "UTC"))
            events = events.set_column(number, name, times)
    return events


def bring_changes(
    cursor: "psycopg.Cursor[Any]", target: Target, changes: Iterable[tuple[Any, Any]]
) -> None:
    """Apply changes to a table: for each key, store the row of the last change, or delete the row
    if the last change is a deletion."""
    table, key, last = target.table, target.key, dict(changes)
    rows = [{**row, key: which} for which, row in last.items() if row is not None]
    keys = f"%s::{target.columns[key]}[]"
    cursor.execute(f"DELETE FROM {table} WHERE {key} = ANY({keys})", [list(last)])  # noqa: S608
    cursor.execute(
        f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, %s)",  # noqa: S608
        [json.dumps(rows, default=str)],  # `default=str` writes decimals as text, without loss
    )


def row_changes(messages: Iterable[Message], avro: Avro, key: str) -> list[tuple[Any, Any]]:
    """Return the changes in Debezium's messages: each key with its new row, or with None if the row
    was deleted."""
    envelopes = [avro.decode(message.value() or b"") for message in messages]
    return [
        ((envelope["after"] or envelope["before"])[key], envelope["after"])
        for envelope in envelopes
    ]


def sink_changes(messages: Iterable[Message], avro: Avro, key: str) -> list[tuple[Any, Any]]:
    """Return the changes in the sink's messages: each key with its new row, or with None if the row
    is no longer in the view."""
    return [
        (avro.decode(message.key() or b"")[key], value and avro.decode(value))
        for message in messages
        for value in [message.value()]
    ]


def flags_of(messages: Iterable[Message]) -> list[int]:
    """Return the valid ids in messages. Invalid messages are ignored, because people write to this
    topic by hand."""
    matches = [FLAG.fullmatch(message.value() or b"") for message in messages]
    return [int(match[1]) for match in matches if match]


def by_topic(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Group a batch of messages by topic, keeping their order.

    Raises:
        RuntimeError: the broker returned an error.
    """
    batches: dict[str, list[Message]] = {}
    for message in messages:
        if error := message.error():
            raise RuntimeError(f"{message.topic()}: {error}")
        batches.setdefault(str(message.topic()), []).append(message)
    return batches


def bring(
    connection: "psycopg.Connection[Any]", messages: Sequence[Message], avro: Avro, targets: Plan
) -> set[str]:
    """Write a batch in one transaction. Return the kinds of its topics (see `plan.py`).

    Raises:
        Refused: a message does not fit its table; nothing was written.
    """
    batch = by_topic(messages)
    try:
        _bring(connection, batch, messages, avro, targets)
    except UNFIT as error:
        for topic, brought in batch.items():
            if refused := first_refused(connection, targets[topic], brought, avro):
                raise refused from error
        raise
    return {targets[topic].how for topic in batch}


def _bring(
    connection: "psycopg.Connection[Any]",
    batch: Mapping[str, Sequence[Message]],
    messages: Sequence[Message],
    avro: Avro,
    targets: Plan,
) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        for topic, brought in batch.items():
            bring_topic(cursor, targets[topic], brought, avro)
        reached = {(m.topic(), m.partition()): int(m.offset() or 0) + 1 for m in messages}
        columns = [[topic for topic, _ in reached], [number for _, number in reached]]
        cursor.execute(GOT_TO, [*columns, list(reached.values())])


def first_refused(
    connection: "psycopg.Connection[Any]", target: Target, messages: Sequence[Message], avro: Avro
) -> Refused | None:
    """Find the first message that does not fit its table, by bisection. Nothing is written."""

    def refusal(tried: Sequence[Message]) -> Exception | None:
        try:
            with connection.transaction(force_rollback=True), connection.cursor() as cursor:
                bring_topic(cursor, target, tried, avro)
        except UNFIT as error:
            return error
        return None

    if not refusal(messages):
        return None
    while len(messages) > 1:
        half = len(messages) // 2
        messages = messages[:half] if refusal(messages[:half]) else messages[half:]
    (message,) = messages
    reason = refusal(messages)
    return Refused(message, _field(connection, target, message, avro), reason) if reason else None


def _field(
    connection: "psycopg.Connection[Any]", target: Target, message: Message, avro: Avro
) -> str:
    """Return the column whose value in a change does not fit the table; empty if it is unknown."""
    try:
        ((_, row),) = (
            row_changes([message], avro, target.key) if target.how == plan.ROWS else [((), {})]
        )
    except UNFIT:
        return ""
    for name, value in (row or {}).items():
        try:
            column = json.dumps({name: value}, default=str)
            connection.execute(ONE_COLUMN.format(table=target.table).encode(), [column])
        except UNFIT:
            return str(name)
    return ""


def bring_topic(
    cursor: "psycopg.Cursor[Any]", target: Target, messages: Sequence[Message], avro: Avro
) -> None:
    """Write the messages of one topic into its table."""
    if target.how == plan.EVENTS:
        bring_events(cursor, target, messages)
    elif target.how == plan.ROWS:
        bring_changes(cursor, target, row_changes(messages, avro, target.key))
    elif target.how == plan.SINK:
        bring_changes(cursor, target, sink_changes(messages, avro, target.key))
    elif target.how == plan.IDS:
        cursor.execute(FLAGS.format(table=target.table), [flags_of(messages)])
    else:
        raise ValueError(f"feed_topics: {target.topic} has the unknown kind {target.how!r}")


def find_topics(kafka: KafkaEndpoint, targets: Plan) -> dict[str, int]:
    """Create the topics of the kinds `plan.OWN`, and wait until all topics exist. Return the number
    of partitions of each topic."""
    admin = AdminClient(kafka.librdkafka())
    own = [target.topic for target in targets.values() if target.how in plan.OWN]
    while True:
        there = admin.list_topics(timeout=ANSWER_WITHIN_S).topics
        if there.keys() >= targets.keys():
            return {topic: len(there[topic].partitions) for topic in targets}
        mine = [NewTopic(topic, 1, kafka.replication_factor) for topic in own if topic not in there]
        for made in (admin.create_topics(mine) if mine else {}).values():
            made.result(ANSWER_WITHIN_S)
        time.sleep(LOOK_EVERY_S)


def consumer_at(
    kafka: KafkaEndpoint, partitions: Mapping[str, int], positions: Mapping[tuple[str, int], int]
) -> Consumer:
    """Return a consumer that reads every topic from its position recorded in PostgreSQL."""
    consumer = Consumer(
        kafka.librdkafka(
            {
                "group.id": "pgfeed",  # required, but nothing is committed to Kafka
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.queue.backoff.ms": 10,
            }
        )
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
    connection: "psycopg.Connection[Any]", kafka: KafkaEndpoint, avro: Avro, batch_s: float
) -> None:
    """Wait for the tables, then copy batches into them endlessly.

    Raises:
        psycopg.errors.UndefinedTable: the tables were dropped.
    """
    positions, targets = wait_for_tables(connection), plan.read(connection, kafka.topic)
    sinks = [Sink(kafka, avro) for target in targets.values() if target.how == plan.SINK]
    consumer = consumer_at(kafka, find_topics(kafka, targets), positions)
    print(f"the tables are there: reading {', '.join(targets)}", flush=True)
    try:
        while True:
            messages = consumer.consume(BATCH, batch_s)
            brought = bring(connection, messages, avro, targets) if messages else ()
            for sink in sinks:
                if plan.ROWS in brought:
                    sink.rows_have_changed()
                sink.send_if_due(connection)
    finally:
        consumer.close()


def wait_for_tables(connection: "psycopg.Connection[Any]") -> dict[tuple[str, int], int]:
    """Wait until the demo's script has created the tables. Return the position in each topic and
    partition up to which messages were copied."""
    while connection.execute(MADE).fetchone() != (True,):
        time.sleep(LOOK_EVERY_S)
    rows = connection.execute(POSITIONS).fetchall()
    return {(topic, number): reached for topic, number, reached in rows}


def main() -> None:
    """Read the environment, connect to PostgreSQL and the broker, and fill tables until the process
    is ended."""
    kafka = KafkaEndpoint.from_environment(os.environ)
    avro = Avro(os.environ["SCHEMA_REGISTRY_URL"])
    batch_s = int(os.environ["POSTGRES_BATCH_MS"]) / 1000
    AdminClient(kafka.librdkafka()).list_topics(timeout=ANSWER_WITHIN_S)
    with psycopg.connect(os.environ.get("PGFEED_URL", ""), autocommit=True) as connection:
        if schema := os.environ.get("PGFEED_SCHEMA"):
            connection.execute(f"SET search_path = {schema}".encode())
        Path(os.environ["READY_FILE"]).touch()
        while True:
            try:
                feed(connection, kafka, avro, batch_s)
            except psycopg.errors.UndefinedTable as gone:
                print(f"the tables are gone, waiting for others: {gone}", flush=True)
            except Refused as refused:
                sys.exit(str(refused))


if __name__ == "__main__":
    main()
