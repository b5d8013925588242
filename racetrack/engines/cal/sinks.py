"""Destinations to which the calibration engine writes its views, in the form in which other engines
or their feeders write them."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import psycopg
import redis
from confluent_kafka import KafkaError, Message, Producer

from racetrack.engines.cal.views import Views
from racetrack.engines.shared.redis_sink.progress import PROGRESS as REDIS_PROGRESS
from racetrack.engines.shared.upsert import new_topics
from racetrack.kafka_endpoint import KafkaEndpoint


class Count(NamedTuple):
    """The count of a partition, and when its newest counted event was due."""

    partition: int
    total: int
    newest_ms: int


class Total(NamedTuple):
    """The same over all partitions."""

    total: int
    newest_ms: int


class Sink(Protocol):
    """A destination. What is written in one call becomes visible together, if possible."""

    def write_counts(self, total: Total | None, counts: Sequence[Count]) -> None:
        """Write changed rows of the two progress views."""

    def write_traced(self, newest_ms: Mapping[int, int]) -> None:
        """Write changed rows of the traced views: partition → newest due time in the view."""


class TopicSink:
    """Writes each view into an upsert topic named `cal.<view>`."""

    def __init__(self, kafka: KafkaEndpoint, views: Views) -> None:
        """Create the topics, or empty them."""
        new_topics.make(kafka, [f"cal.{name}" for name in views.names])
        self._kafka, self._views = kafka, views
        self._producer = Producer(kafka.librdkafka({"linger.ms": 0, "acks": 1}))

    def write_counts(self, total: Total | None, counts: Sequence[Count]) -> None:
        """See `Sink`. Without progress views, nothing is written."""
        if not self._views.progress:
            return
        for partition, counted, newest_ms in counts:
            row = {"partition": partition, "total": counted, "max_received_at": newest_ms}
            self._send(self._views.progress, partition, row)
        if total:
            newest = {"total": total.total, "max_received_at": total.newest_ms}
            self._send(self._views.summary, 0, {"summary_of": "all", **newest})
        self._producer.poll(0)

    def write_traced(self, newest_ms: Mapping[int, int]) -> None:
        """See `Sink`."""
        for rows in self._views.traced:
            unknown = dict.fromkeys(name for name in rows.columns if name != rows.key)
            for partition, due_ms in newest_ms.items():
                key = rows.keys[partition]
                self._send(rows.view, key, {rows.key: key, **unknown, rows.column: due_ms})
        self._producer.poll(0)

    def _send(self, view: str, key: int, row: Mapping[str, object]) -> None:
        value = json.dumps(row, separators=(",", ":"))
        self._producer.produce(
            self._kafka.topic(f"cal.{view}"), value, str(key), on_delivery=_require_delivered
        )


def _require_delivered(error: KafkaError | None, message: Message) -> None:
    if error:
        raise SystemExit(f"cal: {message.topic()}: {error}")


class PostgresSink:
    """Writes each view into a table of PostgreSQL, and sends notifications of new counts, as the
    consumer that fills PostgreSQL does. `conninfo` is the address; PGPASSWORD has the password."""

    def __init__(self, conninfo: str, views: Views) -> None:
        """Create the tables, replacing those of an earlier process."""
        self._views = views
        self._connection = psycopg.connect(conninfo, autocommit=True)
        tables = {
            views.progress: "partition integer PRIMARY KEY, total bigint, max_received_at bigint",
            views.summary: "is_only boolean PRIMARY KEY, total bigint, max_received_at bigint",
            **{
                rows.view: f"{rows.key} bigint PRIMARY KEY, {rows.column} timestamptz"
                for rows in views.traced
            },
        }
        for name, columns in tables.items():
            self._connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
            self._connection.execute(f"CREATE TABLE {name} ({columns})".encode())

    def write_counts(self, total: Total | None, counts: Sequence[Count]) -> None:
        """See `Sink`."""
        with self._connection.transaction():
            self._connection.execute(
                PROGRESS.format(progress=self._views.progress).encode(),
                [list(column) for column in zip(*counts, strict=True)],
            )
            if total:
                summary = SUMMARY.format(summary=self._views.summary)
                self._connection.execute(summary.encode(), total)

    def write_traced(self, newest_ms: Mapping[int, int]) -> None:
        """See `Sink`."""
        for rows in self._views.traced:
            keys = [rows.keys[partition] for partition in newest_ms]
            traced = TRACED.format(view=rows.view, key=rows.key, column=rows.column)
            self._connection.execute(traced.encode(), [keys, list(newest_ms.values())])


class RedisSink:
    """Writes the counts into Redis as engines do that write there, and the newest due time of a
    traced row as the sum of its key's windows, of which there is one."""

    def __init__(self, endpoint: str, views: Views) -> None:
        """Connect to the Redis at `host:port`, and remove what an earlier process wrote."""
        self._client, self._views = redis.Redis.from_url(f"redis://{endpoint}"), views
        self._client.delete(REDIS_PROGRESS)
        for key in {key for rows in views.traced for key in rows.keys}:
            self._client.delete(str(key), f"{key}.windows", f"{key}.0")
            self._client.hset(str(key), mapping={"windows": f"{key}.windows", "0": f"{key}.0"})
            self._client.lpush(f"{key}.windows", 0)

    def write_counts(self, total: Total | None, counts: Sequence[Count]) -> None:  # noqa: ARG002
        """See `Sink`. Clients add up the counts themselves."""
        transaction = self._client.pipeline(transaction=True)
        for partition, counted, newest_ms in counts:
            row = {"total": counted, "max_received_at": newest_ms}
            transaction.hset(REDIS_PROGRESS, str(partition), json.dumps(row))
            transaction.publish(REDIS_PROGRESS, json.dumps({"partition": partition, **row}))
        transaction.execute()

    def write_traced(self, newest_ms: Mapping[int, int]) -> None:
        """See `Sink`."""
        transaction = self._client.pipeline(transaction=True)
        for rows in self._views.traced:
            for partition, due_ms in newest_ms.items():
                transaction.hset(f"{rows.keys[partition]}.0", "seen_count", due_ms)
        transaction.execute()


PROGRESS = """
WITH changed AS (
    INSERT INTO {progress} SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[])
    ON CONFLICT (partition) DO UPDATE SET
        total = excluded.total, max_received_at = excluded.max_received_at
    RETURNING partition, total, max_received_at
)
SELECT pg_notify('{progress}', concat_ws(' ', partition, total, max_received_at))
FROM changed"""
SUMMARY = """
WITH changed AS (
    INSERT INTO {summary} VALUES (true, %s, %s)
    ON CONFLICT (is_only) DO UPDATE SET
        total = excluded.total, max_received_at = excluded.max_received_at
    RETURNING total, max_received_at
)
SELECT pg_notify('{summary}', concat_ws(' ', total, max_received_at))
FROM changed"""
TRACED = """
INSERT INTO {view} SELECT key, to_timestamp(ms / 1000.0)
FROM unnest(%s::bigint[], %s::bigint[]) AS rows (key, ms)
ON CONFLICT ({key}) DO UPDATE SET {column} = excluded.{column}"""
