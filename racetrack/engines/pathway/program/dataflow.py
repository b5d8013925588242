"""Inputs and outputs of a dataflow: topics as Pathway's tables, and tables as topics.

Pathway reserves the column name `id`: such a column has the name `id_` in tables, and `id` in
messages. Pathway has no decimal type: amounts of money are integers, in cents."""

import logging
import operator
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import GenericAlias
from typing import Any

import pathway as pw  # type: ignore[import-not-found]
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from racetrack.clock import now_ms
from racetrack.engines.pathway.program.outputs import Additions, Changes, Topics
from racetrack.engines.shared.upsert import new_topics
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.avro import Avro

ANSWER_S = 30.0
READERS, REFUSED = "pathway_engine.connectors", "Parse error: "
INTEGER, TEXT = int | None, str | None  # types of columns that may be NULL


class Dataflow:
    """A dataflow between the topics of a Kafka cluster."""

    def __init__(
        self,
        kafka: KafkaEndpoint,
        avro: Avro,
        autocommit_ms: int,
        clock_ms: int,
        ready: Path,
        selected: Sequence[str],
    ) -> None:
        """Begin an empty dataflow. `selected` are the selected views, if the workload has any. The
        file `ready` is created once one of them, or the view `summary`, is written."""
        self._kafka, self._avro, self._autocommit_ms = kafka, avro, autocommit_ms
        self.clock_ms, self.selected = clock_ms, selected
        self._topics, self._written = Topics(kafka, ready), list[str]()
        self._added = list[str]()
        # Nothing is committed, and each start has consumer groups of its own: it reads all input.
        self._group = f"pathway-{uuid.uuid4()}"

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> "Dataflow":
        """Begin a dataflow with the settings in these environment variables."""
        return cls(
            KafkaEndpoint.from_environment(variables),
            Avro(variables["SCHEMA_REGISTRY_URL"]),
            int(variables["PATHWAY_AUTOCOMMIT_MS"]),
            int(variables["PATHWAY_CLOCK_MS"]),
            Path(variables["READY_FILE"]),
            variables["SELECTED"].split(","),
        )

    def messages(self, topic: str, **settings: Any) -> pw.Table:
        """Return the messages of a topic; `settings` are further arguments of Pathway's reader."""
        client = {
            "group.id": f"{self._group}-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
        return pw.io.kafka.read(
            self._kafka.librdkafka(client),
            topic=self._kafka.topic(topic),
            autocommit_duration_ms=self._autocommit_ms,
            # Two readers (PATHWAY_THREADS) give some messages the same key, and joins fail.
            parallel_readers=1,
            **settings,
        )

    def events(self, topic: str, **columns: type) -> pw.Table:
        """Return the JSON messages of a topic with these fields, and their partition and offset. A
        message that can't be read ends the process."""
        logging.getLogger(READERS).addHandler(EndOnRefusal(topic))
        schema = pw.schema_from_types(**columns)
        messages = self.messages(topic, format="json", schema=schema, with_metadata=True)
        return messages.select(
            *(messages[name] for name in columns),
            partition=_place("partition"),
            offset=_place("offset"),
        )

    def table(self, topic: str, **columns: Any) -> pw.Table:
        """Return the current rows of a table of MySQL with these columns, of which the first is the
        key. Pathway's own reader of Debezium's messages takes JSON only, so Python decodes Avro."""
        names, types = [name.rstrip("_") for name in columns], (bool, *columns.values())

        def decode(message: bytes) -> Any:
            change = self._avro.decode(message)
            row = change["after"] or change["before"]
            return (change["after"] is None, *(_plain(row[name]) for name in names))

        decoded = pw.udf(decode, return_type=GenericAlias(tuple, types), deterministic=True)
        messages = self.messages(topic, format="raw", autogenerate_key=True, with_metadata=True)
        changes = messages.select(offset=_place("offset"), change=decoded(pw.this.data))
        versions = changes.select(
            pw.this.offset,
            is_deleted=pw.this.change[0],
            **{name: pw.this.change[number] for number, name in enumerate(columns, 1)},
        )
        latest = versions.deduplicate(
            value=pw.this.offset, instance=versions[next(iter(columns))], acceptor=operator.gt
        )
        return latest.filter(~pw.this.is_deleted).select(*(pw.this[name] for name in columns))

    def clock(self) -> tuple[int, pw.Table]:
        """Return the current step of the clock, and a table of all later steps that have come. Step
        n begins n times `clock_ms` after the epoch."""
        clock = Clock(self.clock_ms)
        schema = pw.schema_from_types(step=int)
        steps = pw.io.python.read(clock, schema=schema, autocommit_duration_ms=self._autocommit_ms)
        return clock.begin, steps

    def write(
        self,
        view: str,
        table: pw.Table,
        *key: str,
        money: tuple[str, ...] = (),
        is_summary: bool = False,
    ) -> None:
        """Write a view's changes to its topic. The columns `key` identify a row; without them the
        view has one row. The columns `money` are cents.

        Pathway's own Kafka writer does not fit: it writes a changed row as two messages with a
        difference, and none without a value, so that its topic can neither be compacted nor be read
        as those of the other engines. A subscriber costs a call of Python for each change."""
        topic = f"pathway.{view}"
        self._written.append(topic)
        is_first = is_summary or view in self.selected
        after = self._topics.report_ready if is_first else self._topics.poll
        changes = Changes(self._topics.sender(topic), key, money, after)
        pw.io.subscribe(table, on_change=changes.on_change, on_time_end=changes.on_time_end)

    def write_added(self, view: str, table: pw.Table) -> None:
        """Write the rows of a view to its topic, as messages without a key. Rows are only added."""
        topic = f"pathway.{view}"
        self._added.append(topic)
        additions = Additions(self._topics.sender(topic), self._topics.report_ready)
        pw.io.subscribe(table, on_change=additions.on_change, on_time_end=additions.on_time_end)

    def write_differences(self, topic: str, table: pw.Table, key: pw.ColumnReference) -> None:
        """Write a table's differences to a topic as JSON, as Pathway's own writer does."""
        self._written.append(topic)
        pw.io.kafka.write(
            table,
            self._kafka.librdkafka(),
            topic_name=self._kafka.topic(topic),
            format="json",
            key=key,
        )

    def write_progress(self, progress: str, summary: str, events: pw.Table, due: str) -> None:
        """Write the two views that count events. `due` is the column with their due time. Events
        must only be added: then `max` keeps one value, otherwise it would keep all."""
        if not events.is_append_only:
            raise ValueError("rows of the events may change or go")
        counts = events.groupby(pw.this.partition).reduce(
            partition=pw.reducers.any(pw.this.partition),
            total=pw.reducers.count(),
            max_received_at=pw.reducers.max(events[due]),
        )
        self.write(progress, counts, "partition")
        total = counts.reduce(
            total=pw.reducers.sum(pw.this.total),
            max_received_at=pw.reducers.max(pw.this.max_received_at),
        )
        self.write(summary, total, is_summary=True)

    def create_topics(self, *inputs: str) -> None:
        """Create the topics that are written, or empty them: rows of an earlier start may be gone.
        Of the topics `inputs`, create those that are missing.

        Raises:
            KafkaException: the broker refused.
        """
        new_topics.make(self._kafka, [*self._written, *self._added], self._added)
        admin = AdminClient(self._kafka.librdkafka())
        there = admin.list_topics(timeout=ANSWER_S).topics
        names = [name for name in map(self._kafka.topic, inputs) if name not in there]
        new = [NewTopic(name, 1, self._kafka.replication_factor) for name in names]
        for done in admin.create_topics(new).values() if new else ():
            done.result(ANSWER_S)


class EndOnRefusal(logging.Handler):
    """Ends the process if a message can't be read. Pathway would log that, and go on without the
    message: a measurement must not hide errors."""

    def __init__(self, topic: str) -> None:
        """Report refused messages as messages of `topic`: Pathway does not name theirs."""
        super().__init__()
        self._topic = topic

    def emit(self, record: logging.LogRecord) -> None:
        """End the process if the record reports a refused message."""
        message = record.getMessage()
        if message.startswith(REFUSED):
            reason = message.removeprefix(REFUSED)
            # racetrack/probes/refused_input.py parses this line.
            print(f"RACETRACK refused topic={self._topic}, reason={reason}", flush=True)
            os._exit(1)


class Clock(pw.io.python.ConnectorSubject):  # type: ignore[misc]  # it has no types
    """Source of the steps of a clock. Unlike the rows of `pw.temporal.utc_now`, no step is left out
    if the process is late."""

    def __init__(self, step_ms: int) -> None:
        super().__init__()
        self._step_ms = step_ms
        self.begin = now_ms() // step_ms

    def run(self) -> None:
        step = self.begin
        while True:
            while (step + 1) * self._step_ms <= now_ms():
                step += 1
                self.next(step=step)
            self.commit()
            time.sleep(max(0, (step + 1) * self._step_ms - now_ms()) / 1000)


def function(of: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of columns that applies a Python function to each row. Pathway need not
    keep its results, since it returns the same for the same arguments."""
    made: Callable[..., Any] = pw.udf(of, deterministic=True)
    return made


def _place(field: str) -> pw.ColumnExpression:
    """Return a message's partition or offset."""
    return pw.this["_metadata"][field].as_int(unwrap=True)


def _plain(value: Any) -> Any:
    return int(value.scaleb(2)) if isinstance(value, Decimal) else value
