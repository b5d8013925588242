"""The workload's tables as CDC delivered them: the newest row of each key in each table's topic."""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from racetrack.errors import RacetrackError
from racetrack.kafka_client import NoOffsets, ends, is_retriable
from racetrack.stack.avro import Avro
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import View, Workload

if TYPE_CHECKING:
    from confluent_kafka import Message

ANSWER_WITHIN_S = 30.0
MESSAGES_AT_ONCE = 10_000
COLLECT_S = 0.2
# Confluent's header: a zero and the id of the schema, which is another after ALTER TABLE.
HEADER_BYTES = 5


class CdcTopics:
    """Reads the topics of the tables as they grow; only the newest message of a key is decoded."""

    def __init__(self, kafka: str, registry: str, workload: Workload) -> None:
        self._tables = {workload.cdc_topic(table): table for table in workload.tables}
        self._avro = Avro(registry)
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "racetrack-cdc",  # a consumer must name one; nothing is committed
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )
        self._positions = dict.fromkeys(self._tables, 0)
        self._newest: dict[str, dict[bytes, tuple[int, bytes | None]]] = {
            table: {} for table in workload.tables
        }
        # Messages of each table that are no change of a row, in words.
        self.unfit: dict[str, list[str]] = {}

    def close(self) -> None:
        """End the conversation with the broker."""
        self._consumer.close()

    def read_on(self) -> int:
        """Read what the topics have got since the last call; the number of messages.

        Raises:
            RacetrackError: the broker refuses, or does not deliver in time.
        """
        give_up = time.monotonic() + ANSWER_WITHIN_S
        try:
            told = ends(self._consumer, [(t, 0) for t in self._tables], OFFSET_END, ANSWER_WITHIN_S)
        except NoOffsets as why:
            raise RacetrackError(f"The topics of CDC can't be read: {why}.") from why
        missing = {t: told[t, 0] for t, at in self._positions.items() if at < told[t, 0]}
        if not missing:
            return 0
        before = sum(self._positions.values())
        self._consumer.assign([TopicPartition(t, 0, self._positions[t]) for t in missing])
        try:
            while any(self._positions[topic] < end for topic, end in missing.items()):
                for message in self._consumer.consume(MESSAGES_AT_ONCE, COLLECT_S):
                    self._take(message)
                if time.monotonic() > give_up:
                    raise RacetrackError(
                        f"The broker did not deliver the topics of CDC up to {missing} within"
                        f" {ANSWER_WITHIN_S:.0f} s: it is at {self._positions}."
                    )
        finally:
            self._consumer.unassign()
        return sum(self._positions.values()) - before

    def table(self, view: View) -> pa.Table:
        """The rows of a table, with the columns of its view that its messages have."""
        self.unfit.pop(view.name, None)
        rows = [
            row
            for offset, value in self._newest[view.name].values()
            if value is not None and (row := self._row(view.name, offset, value)) is not None
        ]
        # A table without rows, or one that lost a column, is compared as far as it goes.
        there = [name for name in view.columns if not rows or any(name in row for row in rows)]
        return pa.table({name: _column([row.get(name) for row in rows]) for name in there})

    def _take(self, message: "Message") -> None:
        if error := message.error():
            if not is_retriable(error):
                raise RacetrackError(f"{message.topic()} can't be read: {error}.")
            return
        topic, offset = str(message.topic()), int(message.offset() or 0)
        key = (message.key() or b"")[HEADER_BYTES:]
        self._newest[self._tables[topic]][key] = offset, message.value()
        self._positions[topic] = offset + 1

    def _row(self, table: str, offset: int, value: bytes) -> Mapping[str, Any] | None:
        """The row after a change; None if it was deleted, or the message is no change."""
        envelope: object = None
        # fastavro ends in one of many ways where the bytes are not of the schema.
        with suppress(ValueError, TypeError, EOFError, LookupError, ArithmeticError):
            envelope = self._avro.decode(value)
        if isinstance(envelope, dict) and "after" in envelope:
            row: Mapping[str, Any] | None = envelope["after"]
            return row
        self.unfit.setdefault(table, []).append(f"offset {offset} is no change of a row")
        return None


def open_topics(stack: Stack, workload: Workload) -> CdcTopics:
    """Return a reader of the topics of a stack that is up."""
    return CdcTopics(stack.endpoints.kafka, stack.endpoints.registry, workload)


def _column(values: list[Any]) -> pa.Array:
    """A column of the values' own type; of text where they have several."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
