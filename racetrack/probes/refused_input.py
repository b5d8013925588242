"""Find the message on which an engine failed: its position, the faulty field, and the reason.

Engines seldom report all three. The engine's log is searched first. Then its input topics are read,
from just before the engine's last count, and each message is checked against the workload's schema.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException, TopicPartition

from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.avro import Avro
from racetrack.stack.service import NotReady
from racetrack.workloads.contract import Workload
from racetrack.workloads.message import fault_of

# Only the last bytes of a log are searched.
LOG_BYTES = 2 << 20
# Number of messages before the engine's last count at which the search begins: an engine that
# processes a partition in parallel may have counted messages after the faulty one.
BEFORE_COUNTED = 50_000
SEARCH_WITHIN_S = 10.0
ANSWER_WITHIN_S = 3.0
BATCH = 10_000
REASON_CHARACTERS = 240
VALUE_CHARACTERS = 60

# Error line of this project's own engine programs, see `racetrack/engines/shared/java_program`.
_OWN = re.compile(
    r"RACETRACK refused topic=(?P<topic>[\w.-]+)"
    r"(?:, partition=(?P<partition>\d+), offset=(?P<offset>\d+))?"
    r"(?:, field=(?P<field>\w*))?, reason=(?P<reason>.*)"
)
# Position of a record in error messages of Kafka's Java clients and of engines built on them.
_PLACES = (
    re.compile(
        r"topic ?[=:] ?'?(?P<topic>[\w.-]+)'?, partition ?[=:] ?(?P<partition>\d+),"
        r"(?: leaderEpoch = \w+,)? offset ?[=:] ?(?P<offset>\d+)"
    ),
    re.compile(r"partition (?P<topic>[\w.-]+)-(?P<partition>\d+) at offset (?P<offset>\d+)"),
)
_CAUSE = re.compile(r"^(?:Caused by: )(?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:[\w$]+\.)*([A-Z][\w$]*(?:Exception|Error)\b.*)$", re.MULTILINE)
# Package name before the class name of a Java exception.
_PACKAGE = re.compile(r"\b(?:[a-z][\w$]*\.)+(?=[A-Z][\w$]*(?:Exception|Error)\b)")
# Log line about a failed job or table.
_FAILED = re.compile(r"\b(?:failed|ERROR): +(.+)")


@dataclass(frozen=True)
class Message:
    """A message in the broker."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    timestamp_ms: int = 0


@dataclass(frozen=True)
class Refusal:
    """A message that an engine can't process. Position and field may be unknown."""

    topic: str
    partition: int | None = None
    offset: int | None = None
    field: str = ""
    reason: str = ""

    def line(self, title: str) -> str:
        """Return a one-line description for the user; `title` is the engine's."""
        at = "" if self.partition is None else f"/{self.partition} at offset {self.offset}"
        field = f", field {self.field}" if self.field else ""
        reason = _PACKAGE.sub("", _cut(self.reason, REASON_CHARACTERS))
        return f"{title} can't take {self.topic}{at}{field}: {reason or 'its log gives no reason'}"


class Input(Protocol):
    """The topics that an engine reads."""

    def at(self, topic: str, partition: int, offset: int) -> Message | None:
        """Return the message at a position; None if the broker no longer has it."""

    def since(self, topic: str, counted: Mapping[int, int]) -> Iterator[Message]:
        """Yield the messages of each partition, from a little before its count in `counted` to its
        current end."""


class KafkaInput:
    """`Input` from a broker. Stops reading SEARCH_WITHIN_S after its creation."""

    def __init__(self, kafka: KafkaEndpoint) -> None:
        self._kafka = kafka
        self._give_up_s = time.monotonic() + SEARCH_WITHIN_S

    def at(self, topic: str, partition: int, offset: int) -> Message | None:
        """Read one message."""
        with closing(self._consumer()) as consumer:
            consumer.assign([TopicPartition(self._kafka.topic(topic), partition, offset)])
            messages = self._next(consumer, 1)
        return messages[0] if messages and messages[0].offset == offset else None

    def since(self, topic: str, counted: Mapping[int, int]) -> Iterator[Message]:
        """Read partition after partition."""
        with closing(self._consumer()) as consumer:
            name = self._kafka.topic(topic)
            known = consumer.list_topics(name, timeout=ANSWER_WITHIN_S).topics[name]
            for number in sorted(known.partitions):
                partition = TopicPartition(name, number)
                begin, end = consumer.get_watermark_offsets(partition, timeout=ANSWER_WITHIN_S)
                at = max(begin, counted.get(number, 0) - BEFORE_COUNTED)
                consumer.assign([TopicPartition(name, number, at)])
                while at < end and (messages := self._next(consumer, BATCH)):
                    yield from messages
                    at = messages[-1].offset + 1

    def _consumer(self) -> Consumer:
        return Consumer(
            self._kafka.librdkafka(
                {
                    "group.id": "racetrack-refused",  # required, but nothing is committed
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "log_level": 0,
                }
            )
        )

    def _next(self, consumer: Consumer, count: int) -> list[Message]:
        while (left_s := self._give_up_s - time.monotonic()) > 0:
            messages = [
                Message(
                    topic=self._kafka.name_of(message.topic()),
                    partition=int(message.partition() or 0),
                    offset=int(message.offset() or 0),
                    value=message.value(),
                    timestamp_ms=message.timestamp()[1],
                )
                for message in consumer.consume(count, min(left_s, 0.1))
                if not message.error()
            ]
            if messages:
                return messages
        return []


def explain(
    failure: str,
    logs: Sequence[Path],
    workload: Workload,
    kafka: KafkaEndpoint,
    registry: str,
    counted: Mapping[int, int],
) -> Refusal | None:
    """Return the message on which an engine failed; None if the cause is not found in its input.

    `failure` is the error that reported the failure, `logs` are the logs of the engine's services,
    and `counted` is the engine's last count of the main topic by partition.
    """
    texts = [failure, *(_end_of(log) for log in logs)]
    if kafka.topic_prefix:
        texts = [text.replace(kafka.topic_prefix, "") for text in texts]
    try:
        return find(texts, workload, KafkaInput(kafka), Avro(registry), counted)
    except (KafkaException, NotReady):
        return None  # the topics can't be read; the failure itself is reported


def future_message(
    newest_ms: int, ahead_ms: float, workload: Workload, topics: Input, counted: Mapping[int, int]
) -> str | None:
    """Return a text on the message of the main topic that was due at `newest_ms`, `ahead_ms` ahead
    of the clock when the engine counted it; None if it is not found."""
    field, digits = workload.topic.due_field, str(newest_ms).encode()
    for message in topics.since(workload.topic.name, counted):
        value = message.value or b""
        if digits not in value or fault_of(value, workload.topic):
            continue
        if json.loads(value)[field] == newest_ms:
            return (
                f"{message.topic}/{message.partition} at offset {message.offset} is"
                f" {ahead_ms / 1000:,.1f} s ahead of the clock: field {field} is {newest_ms}. The"
                " generator did not write it. Keep other producers out of the topic, and run it"
                " again."
            )
    return None


def find(
    texts: Sequence[str], workload: Workload, topics: Input, avro: Avro, counted: Mapping[int, int]
) -> Refusal | None:
    """Search as `explain` does; `texts` are the error and the ends of the logs."""
    reason = next(filter(None, map(reason_in, texts)), "")
    search = _Search(workload, topics, avro, reason)
    named = next(filter(None, (_named(text, search.names) for text in texts)), None)
    if named and named.offset is not None:
        return search.completed(named)
    return search.in_main_topic(counted) or search.in_changes() or named


class _Search:
    """Search of the input of one engine."""

    def __init__(self, workload: Workload, topics: Input, avro: Avro, reason: str) -> None:
        self._main, self._topics, self._avro = workload.topic, topics, avro
        self._tables = {workload.cdc_topic(table): table for table in workload.tables}
        self._columns = {
            topic: tuple(workload.view(table).columns) for topic, table in self._tables.items()
        }
        self._reason = reason
        self.names = {self._main.name, *self._tables, *(topic.name for topic in workload.topics)}

    def completed(self, named: Refusal) -> Refusal:
        """Complete a refusal in which the engine reported the message's position: read the message,
        and add the faulty field and the reason."""
        reason = named.reason or self._reason
        message = self._topics.at(named.topic, named.partition or 0, named.offset or 0)
        if (
            message
            and named.topic == self._main.name
            and (fault := fault_of(message.value, self._main))
        ):
            return replace(named, field=fault.field, reason=_joined(fault.reason, reason))
        fields = self._columns.get(named.topic, tuple(self._main.fields))
        field = named.field or _field_in(reason, fields)
        if message and (row := self._row(message)) is not None and field in row:
            reason = _joined(f"{_shown(row[field])}", reason)
        return replace(named, field=field, reason=reason)

    def in_main_topic(self, counted: Mapping[int, int]) -> Refusal | None:
        """Return the invalid message with the earliest timestamp; None if all are valid. A message
        that the engine has counted is only returned if there is no other."""
        first: tuple[tuple[bool, int], Refusal] | None = None
        for message in self._topics.since(self._main.name, counted):
            if fault := fault_of(message.value, self._main):
                is_counted = message.offset < counted.get(message.partition, 0)
                place = is_counted, message.timestamp_ms
                if not first or place < first[0]:
                    first = place, self._refusal(message, fault.field, fault.reason)
        return first[1] if first else None

    def in_changes(self) -> Refusal | None:
        """Return the first change event that can't be decoded or contains the value that the
        engine's error quotes; None if there is none."""
        blames_null = "null" in self._reason.lower()
        with_null = None
        for topic, columns in self._columns.items():
            named = _field_in(self._reason, columns)
            for message in self._topics.since(topic, {}):
                if message.value is None:
                    return self._refusal(message, "", "no value (a tombstone)")
                try:
                    row = self._row(message) or {}
                except (ValueError, EOFError, LookupError) as error:
                    return self._refusal(message, "", f"not Avro: {error}")
                if named in row and _is_blamed(row[named], self._reason):
                    return self._refusal(message, named, _shown(row[named]))
                if not with_null and (
                    empty := [name for name in columns if row.get(name, 0) is None]
                ):
                    with_null = self._refusal(message, empty[0], "NULL")
        # An error about a null value may name a column of a view, which has another name in the
        # table.
        return with_null if blames_null else None

    def _refusal(self, message: Message, field: str, why: str) -> Refusal:
        reason = _joined(why, self._reason)
        return Refusal(message.topic, message.partition, message.offset, field, reason)

    def _row(self, message: Message) -> Mapping[str, Any] | None:
        """Return the row after the change, or the row that a deletion removed; None if the message
        is not a change event."""
        if message.topic not in self._tables or message.value is None:
            return None
        envelope = self._avro.decode(message.value)
        row: Mapping[str, Any] | None = envelope["after"] or envelope["before"]
        return row


def reason_in(text: str) -> str:
    """Return the innermost cause of a failure in a log, as one line; empty if there is none."""
    if own := _OWN.search(text):
        return own["reason"].strip()
    if causes := _CAUSE.findall(text):
        return str(causes[-1]).strip()
    exceptions = _EXCEPTION.findall(text) or _FAILED.findall(text)
    return str(exceptions[-1]).strip() if exceptions else ""


def _named(text: str, topics: set[str]) -> Refusal | None:
    """Return the message whose position a text reports, if it is in one of these topics."""
    for pattern in (_OWN, *_PLACES):
        for place in pattern.finditer(text):
            groups = place.groupdict()
            if groups["topic"] in topics:
                return Refusal(
                    topic=groups["topic"],
                    partition=None if groups["partition"] is None else int(groups["partition"]),
                    offset=None if groups["offset"] is None else int(groups["offset"]),
                    field=groups.get("field") or "",
                    reason=(groups.get("reason") or "").strip(),
                )
    return None


def _field_in(reason: str, fields: Sequence[str]) -> str:
    """Return the first of these fields that a reason names in quotes."""
    for field in fields:
        if re.search(rf"""['"`/(]{re.escape(field)}['"`)]""", reason):
            return field
    return ""


def _is_blamed(value: object, reason: str) -> bool:
    if value is None:
        return "null" in reason.lower()
    return len(str(value)) > 1 and str(value) in reason


def _joined(what: str, reason: str) -> str:
    """Return the message's fault, followed by the engine's reason in parentheses unless the fault
    contains that already."""
    return f"{what} ({reason})" if reason and reason not in what else what


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int | Decimal) else _cut(repr(value), VALUE_CHARACTERS)


def _cut(text: str, characters: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"


def _end_of(log: Path) -> str:
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - LOG_BYTES))
        return file.read().decode(errors="replace")
