"""Probes of change data capture: the connector's state, the schemas, and captured purchases."""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    TopicPartition,
)

from racetrack import clock
from racetrack.engines.contract import Engine
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.kafka_client import FEW_FETCHES, is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.base import HadOutage, Probe, no_outage
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.probes.refused_input import KafkaInput
from racetrack.results.folder import RunFolder
from racetrack.stack import net
from racetrack.stack.avro import id_of
from racetrack.stack.contract import Stack
from racetrack.stack.service import NotReady
from racetrack.stack.services import debezium
from racetrack.workloads.contract import find_workload

STATUS_EVERY_S = 2.0
# Generous, because Connect may answer late on a busy machine, which must not end a run.
SILENT_FOR_S = 60.0


class ConnectorFailed(RacetrackError):
    """The connector or its task has failed or was stopped."""


class ConnectorProbe(Probe):
    """Requests the connector's state from Kafka Connect every two seconds. Connect itself keeps
    running after a connector has failed, so checking the process is not enough."""

    name = "The state of Debezium's connector"

    def __init__(
        self,
        connect_url: str,
        connector: str,
        had_outage: HadOutage = no_outage,
        silent_for_s: float = SILENT_FOR_S,
        every_s: float = STATUS_EVERY_S,
    ) -> None:
        super().__init__()
        self._url, self._connector, self._every_s = connect_url, connector, every_s
        self._had_outage, self._silent_for_s = had_outage, silent_for_s

    def run(self) -> None:
        """Request the state until the connector fails or Connect has not answered for too long."""
        answered_s = time.monotonic()
        while not self.stopping.wait(self._every_s):
            try:
                status = debezium.connector_status(self._url, self._connector)
            except NotReady as why:
                silent_s = time.monotonic() - answered_s
                if silent_s > self._silent_for_s and not self._had_outage(answered_s):
                    raise RacetrackError(
                        f"Kafka Connect has not reported a connector's state for {silent_s:.0f} s:"
                        f" {why}"
                    ) from None
                continue
            answered_s = time.monotonic()
            if status and (failure := status.failure):
                raise ConnectorFailed(f"{failure}\nDebezium's log is stack/debezium.log.")

    def check(self) -> None:
        """Raise the error that ended the probe, if there is one.

        Raises:
            RacetrackError: the connector has failed, or its state is unknown.
        """
        if isinstance(self._failure, ConnectorFailed):
            raise self._failure
        super().check()


SCHEMAS_EVERY_S = 5.0
Types = Mapping[str, str]


def newest_types(stack: Stack) -> dict[str, Types]:
    """Return the types of the columns of each table now, by CDC topic; without tables that have no
    schema yet."""
    workload, types = find_workload(stack.settings.workload), {}
    for topic in map(workload.cdc_topic, workload.tables):
        with contextlib.suppress(NotReady):
            types[topic] = _newest_types(stack, topic)
    return types


def _newest_types(stack: Stack, topic: str) -> Types:
    subject = f"{stack.endpoints.kafka.topic(topic)}-value"
    return _types(stack.endpoints.registry, f"subjects/{subject}/versions/latest")


def _types(registry: str, path: str) -> Types:
    answer: Any = net.get_json(f"{registry}/{path}")
    return column_types(answer["schema"])


class SchemasProbe(Probe):
    """Fails once the type of a table's column changes, such as the scale of a decimal. Used for
    engines that keep decoding by the first schema and would read wrong numbers.

    `first` contains the types that the engine saw when it loaded its demo, by topic. Of a topic
    that is missing there, the types at the first look are used."""

    failure_kind = EngineFailed

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        first: Mapping[str, Types],
        every_s: float = SCHEMAS_EVERY_S,
    ) -> None:
        super().__init__()
        self._stack, self._first, self._every_s = stack, dict(first), every_s
        self.name = f"The input of {engine.title} from MySQL's tables"
        workload = find_workload(stack.settings.workload)
        self._topics = [workload.cdc_topic(table) for table in workload.tables]
        self._kafka, self._registry = stack.endpoints.kafka, stack.endpoints.registry

    def run(self) -> None:
        """Compare each topic's newest schema with its first."""
        first = self._first
        while not self.stopping.wait(self._every_s):
            for topic in self._topics:
                try:
                    newest = _newest_types(self._stack, topic)
                    if changed := changed_field(first.setdefault(topic, newest), newest):
                        self._fail(topic, first[topic], changed)
                except NotReady:
                    continue  # this may be an expected outage; try again

    def _fail(self, topic: str, first: Types, field: str) -> None:
        """Raise an error that names the first message with the new type. Return if there is none
        yet."""
        types: dict[int, Types] = {}
        for message in KafkaInput(self._kafka).since(topic, {}):
            if (number := id_of(message.value)) not in types:
                types[number] = _types(self._registry, f"schemas/ids/{number}")
            if types[number].get(field, first[field]) != first[field]:
                # `refused_input` parses this line.
                raise RacetrackError(
                    f"RACETRACK refused topic={topic}, partition={message.partition},"
                    f" offset={message.offset}, field={field},"
                    f" reason=its type is now {types[number][field]}, and was {first[field]}"
                )


def column_types(envelope: str) -> Types:
    """Return the type of each column in a schema of Debezium's change events. Nullable and not
    nullable columns have the same type."""
    fields = {part["name"]: part["type"] for part in json.loads(envelope)["fields"]}
    row = next(kind for kind in fields["before"] if isinstance(kind, dict))
    return {column["name"]: _shown(column["type"]) for column in row["fields"]}


def changed_field(first: Types, newest: Types) -> str:
    """Return the first column whose type has changed; empty if there is none."""
    return next((name for name in first if newest.get(name, first[name]) != first[name]), "")


def _shown(avro: Any) -> str:
    if isinstance(avro, list):
        return _shown(next(kind for kind in avro if kind != "null"))
    if not isinstance(avro, dict):
        return str(avro)
    if avro.get("logicalType") == "decimal":
        return f"DECIMAL({avro['precision']}, {avro.get('scale', 0)})"
    return str(avro["type"])


FILE, TITLES = "purchases.csv", "at_ms,due,refused,done,captured,sent_ms\n"
BATCH = 10_000
# The generator reports its counts every 0.1 s; read the topic shortly before the next report.
JUST_BEFORE_THE_NEXT_S = 0.08
HEADER_BYTES = 5
# The probe fails if the broker returns nothing but temporary errors for this long.
RETRIED_FOR_S = 30.0


class PurchasesProbe(Probe):
    """Follows purchases through CDC: writes `purchases.csv`, about ten rows a second.

    Columns: `at_ms`; purchases `due`, `refused` and `done` (in MySQL) since the generator's start,
    summed over all kinds of events that insert purchases; `captured`: distinct purchases in the
    topic; `sent_ms`: when Debezium sent the newest of them, by Debezium's clock, 0 if there is
    none.
    """

    name = "Debezium's topic of inserts"

    def __init__(
        self,
        kafka: KafkaEndpoint,
        topic: str,
        kinds: Sequence[str],
        arrivals: ArrivalsProbe,
        folder: RunFolder,
        had_outage: HadOutage,
    ) -> None:
        super().__init__()
        self._topic, self._kinds = kafka.topic(topic), kinds
        self._arrivals, self._had_outage = arrivals, had_outage
        self._consumer = Consumer(
            kafka.librdkafka(
                {
                    "group.id": "racetrack-purchases",
                    "enable.auto.commit": False,
                    "log_level": 2,
                    **FEW_FETCHES,
                }
            )
        )
        self._csv = folder.open_for_lines(FILE)
        self._ids: set[int] = set()
        self._sent_ms = 0
        self._failing_since_s: float | None = None

    def run(self) -> None:
        """Repeatedly read the topic, then write a row with the generator's next report."""
        with self._csv, contextlib.closing(self._consumer):
            self._csv.write(TITLES)
            self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
            while not self.stopping.wait(JUST_BEFORE_THE_NEXT_S):
                self._take()
                # Use a report from after the read, so that `captured` never exceeds `due`.
                if stats := self._arrivals.counts_after(clock.now_ms(), self.stopping):
                    self._write(stats)

    def _write(self, stats: Mapping[str, Any]) -> None:
        inserted = [stats[kind] for kind in self._kinds if kind in stats]
        counts = [sum(counted[what] for counted in inserted) for what in ("due", "refused", "done")]
        row = stats["now_ms"], *counts, len(self._ids), self._sent_ms
        self._csv.write(",".join(map(str, row)) + "\n")

    def _take(self) -> None:
        began_s = time.monotonic()
        for message in self._consumer.consume(BATCH, 0):
            if error := message.error():
                if not (self._had_outage(began_s) or self._may_pass(error)):
                    raise RacetrackError(f"{self._topic} can't be read: {error}.")
            else:
                self._failing_since_s = None
                self._note(purchase_id(message.key() or b""), message.timestamp())

    def _may_pass(self, error: KafkaError) -> bool:
        now_s = time.monotonic()
        self._failing_since_s = self._failing_since_s or now_s
        return is_retriable(error) and now_s - self._failing_since_s < RETRIED_FOR_S

    def _note(self, number: int, stamp: tuple[int, int]) -> None:
        kind, sent_ms = stamp
        if kind != TIMESTAMP_CREATE_TIME:
            raise RacetrackError(
                f"{self._topic} does not keep the time at which its messages were sent: set its"
                " message.timestamp.type to CreateTime."
            )
        if number not in self._ids:
            self._ids.add(number)
            self._sent_ms = max(self._sent_ms, sent_ms)


def purchase_id(key: bytes) -> int:
    """Return the purchase id in a message's key: a header of five bytes (Confluent's wire format),
    then an Avro long, which is zigzag-encoded with seven bits per byte, lowest bits first.

    Raises:
        RacetrackError: the key is too short.
    """
    if len(key) < HEADER_BYTES + 1:
        raise RacetrackError(f"A message of a purchase has no id in its key: {key!r}.")
    number = 0
    for place, byte in enumerate(key[HEADER_BYTES:]):
        number |= (byte & 0x7F) << 7 * place
    return (number >> 1) ^ -(number & 1)
