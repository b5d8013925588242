"""Finds the message that made an engine fail: where it stands, which field is at fault, and why.

An engine seldom reports all three. What its log says is taken, and what it leaves out is found by
reading its input from where it had counted up to, with the workload's own definition of a message.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException, TopicPartition

from racetrack.stack.avro import Avro
from racetrack.stack.service import NotReady
from racetrack.workloads.contract import Workload, fault_of

# How much of a log is searched, from its end.
LOG_BYTES = 2 << 20
# Engines that process a partition in parallel may have counted messages behind the faulty one.
BEFORE_COUNTED = 50_000
SEARCH_WITHIN_S = 10.0
ANSWER_WITHIN_S = 3.0
BATCH = 10_000
REASON_CHARACTERS = 240
VALUE_CHARACTERS = 60

# What our own programs print; see the record in `racetrack/engines/shared/java_program`.
_OWN = re.compile(
    r"RACETRACK refused topic=(?P<topic>[\w.-]+)"
    r"(?:, partition=(?P<partition>\d+), offset=(?P<offset>\d+))?"
    r"(?:, field=(?P<field>\w*))?, reason=(?P<reason>.*)"
)
# How Kafka's Java clients and the engines built on them name a record.
_PLACES = (
    re.compile(
        r"topic ?[=:] ?'?(?P<topic>[\w.-]+)'?, partition ?[=:] ?(?P<partition>\d+),"
        r"(?: leaderEpoch = \w+,)? offset ?[=:] ?(?P<offset>\d+)"
    ),
    re.compile(r"partition (?P<topic>[\w.-]+)-(?P<partition>\d+) at offset (?P<offset>\d+)"),
)
_CAUSE = re.compile(r"^(?:Caused by: )(?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:[\w$]+\.)*([A-Z][\w$]*(?:Exception|Error)\b.*)$", re.MULTILINE)
# Java's packages before the name of an error.
_PACKAGE = re.compile(r"\b(?:[a-z][\w$]*\.)+(?=[A-Z][\w$]*(?:Exception|Error)\b)")
# How engines report a failed job or table.
_FAILED = re.compile(r"\b(?:failed|ERROR): +(.+)")


@dataclass(frozen=True)
class Message:
    """A message as the broker has it."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    timestamp_ms: int = 0


@dataclass(frozen=True)
class Refusal:
    """A message that an engine can't take. Without a place, or a field, that is unknown."""

    topic: str
    partition: int | None = None
    offset: int | None = None
    field: str = ""
    reason: str = ""

    def line(self, title: str) -> str:
        """One line that names the engine and all that is known."""
        at = "" if self.partition is None else f"/{self.partition} at offset {self.offset}"
        field = f", field {self.field}" if self.field else ""
        reason = _PACKAGE.sub("", _cut(self.reason, REASON_CHARACTERS))
        return f"{title} can't take {self.topic}{at}{field}: {reason or 'its log does not say why'}"


class Input(Protocol):
    """The topics that an engine reads."""

    def at(self, topic: str, partition: int, offset: int) -> Message | None:
        """Return the message there, None if the broker no longer has it."""

    def since(self, topic: str, counted: Mapping[int, int]) -> Iterator[Message]:
        """Yield what each partition has from a little before these counts to its present end."""


class KafkaInput:
    """See `Input`. It gives up after SEARCH_WITHIN_S."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._give_up_s = time.monotonic() + SEARCH_WITHIN_S

    def at(self, topic: str, partition: int, offset: int) -> Message | None:
        """Read one message."""
        with closing(self._consumer()) as consumer:
            consumer.assign([TopicPartition(topic, partition, offset)])
            found = self._next(consumer, 1)
        return found[0] if found and found[0].offset == offset else None

    def since(self, topic: str, counted: Mapping[int, int]) -> Iterator[Message]:
        """Read partition after partition."""
        with closing(self._consumer()) as consumer:
            known = consumer.list_topics(topic, timeout=ANSWER_WITHIN_S).topics[topic]
            for number in sorted(known.partitions):
                partition = TopicPartition(topic, number)
                begin, end = consumer.get_watermark_offsets(partition, timeout=ANSWER_WITHIN_S)
                at = max(begin, counted.get(number, 0) - BEFORE_COUNTED)
                consumer.assign([TopicPartition(topic, number, at)])
                while at < end and (messages := self._next(consumer, BATCH)):
                    yield from messages
                    at = messages[-1].offset + 1

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._kafka,
                "group.id": "racetrack-refused",  # a consumer must name one; nothing is committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )

    def _next(self, consumer: Consumer, count: int) -> list[Message]:
        while (left_s := self._give_up_s - time.monotonic()) > 0:
            found = [
                Message(
                    topic=str(each.topic()),
                    partition=int(each.partition() or 0),
                    offset=int(each.offset() or 0),
                    value=each.value(),
                    timestamp_ms=each.timestamp()[1],
                )
                for each in consumer.consume(count, min(left_s, 0.1))
                if not each.error()
            ]
            if found:
                return found
        return []


def explain(
    failure: str,
    logs: Sequence[Path],
    workload: Workload,
    kafka: str,
    registry: str,
    counted: Mapping[int, int],
) -> Refusal | None:
    """Return the message that made an engine fail; None if its input does not seem to be the cause.

    `failure` is how the failure was noticed, `logs` are those of the engine's services, `counted`
    is how many messages of each partition of the main topic the engine had counted.
    """
    texts = [failure, *(_end_of(log) for log in logs)]
    try:
        return find(texts, workload, KafkaInput(kafka), Avro(registry), counted)
    except (KafkaException, NotReady):
        return None  # without the topics there is no more to know; the failure itself is reported


def find(
    texts: Sequence[str], workload: Workload, topics: Input, avro: Avro, counted: Mapping[int, int]
) -> Refusal | None:
    """See `explain`; `texts` are what the engine and the harness have said of the failure."""
    reason = next(filter(None, map(reason_in, texts)), "")
    search = _Search(workload, topics, avro, reason)
    named = next(filter(None, (_named(text, search.names) for text in texts)), None)
    if named and named.offset is not None:
        return search.completed(named)
    return search.in_main_topic(counted) or search.in_changes() or named


class _Search:
    """Looks through the input of one engine."""

    def __init__(self, workload: Workload, topics: Input, avro: Avro, reason: str) -> None:
        self._main, self._topics, self._avro = workload.topic, topics, avro
        self._tables = {workload.cdc_topic(table): table for table in workload.tables}
        self._columns = {
            topic: tuple(workload.view(table).columns) for topic, table in self._tables.items()
        }
        self._reason = reason
        self.names = {self._main.name, *self._tables, *(each.name for each in workload.topics)}

    def completed(self, named: Refusal) -> Refusal:
        """A place that the engine named, with what the message itself shows."""
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
        """The first message that is none of the workload's, by the broker's time."""
        found: dict[int, tuple[int, Refusal]] = {}
        for message in self._topics.since(self._main.name, counted):
            if message.partition in found or not (fault := fault_of(message.value, self._main)):
                continue
            refusal = self._refusal(message, fault.field, fault.reason)
            found[message.partition] = message.timestamp_ms, refusal
        return min(found.values(), key=lambda each: each[0])[1] if found else None

    def in_changes(self) -> Refusal | None:
        """The first change that can't be decoded, or has the value that the engine complains of."""
        complains_of_null = "null" in self._reason.lower()
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
        # The engine names a column of a view where it is called otherwise in the table.
        return with_null if complains_of_null else None

    def _refusal(self, message: Message, field: str, why: str) -> Refusal:
        reason = _joined(why, self._reason)
        return Refusal(message.topic, message.partition, message.offset, field, reason)

    def _row(self, message: Message) -> Mapping[str, Any] | None:
        """The row that a change left behind, None if it is none or there is none."""
        if message.topic not in self._tables or message.value is None:
            return None
        envelope = self._avro.decode(message.value)
        row: Mapping[str, Any] | None = envelope["after"] or envelope["before"]
        return row


def reason_in(text: str) -> str:
    """The innermost cause of the first failure that a log shows, in one line; empty if none."""
    if own := _OWN.search(text):
        return own["reason"].strip()
    if causes := _CAUSE.findall(text):
        return str(causes[-1]).strip()
    found = _EXCEPTION.findall(text) or _FAILED.findall(text)
    return str(found[-1]).strip() if found else ""


def _named(text: str, topics: set[str]) -> Refusal | None:
    """The message that a text names, if it is one of these topics."""
    for pattern in (_OWN, *_PLACES):
        for found in pattern.finditer(text):
            said = found.groupdict()
            if said["topic"] in topics:
                place = [None if said[n] is None else int(said[n]) for n in ("partition", "offset")]
                field, reason = said.get("field") or "", (said.get("reason") or "").strip()
                return Refusal(said["topic"], place[0], place[1], field, reason)
    return None


def _field_in(reason: str, fields: Sequence[str]) -> str:
    """The first of these fields that a reason names in quotes."""
    for field in fields:
        if re.search(rf"""['"`/(]{re.escape(field)}['"`)]""", reason):
            return field
    return ""


def _is_blamed(value: object, reason: str) -> bool:
    if value is None:
        return "null" in reason.lower()
    return len(str(value)) > 1 and str(value) in reason


def _joined(what: str, reason: str) -> str:
    """What the message shows, then what the engine says, if that is more."""
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
