"""How far purchases have come: due, in MySQL, and out of Debezium again, in their topic."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    TopicPartition,
)

from racetrack import clock
from racetrack.errors import RacetrackError
from racetrack.kafka_client import is_retriable
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.probes.thread import Probe
from racetrack.results.folder import RunFolder

FILE, TITLES = "purchases.csv", "at_ms,due,refused,done,captured,sent_ms\n"
BATCH = 10_000
# The generator speaks every 0.1 s.
JUST_BEFORE_THE_NEXT_S = 0.08
HEADER_BYTES = 5
# How long the broker may answer with nothing but errors that pass by themselves.
RETRIED_FOR_S = 30.0


class PurchasesProbe(Probe):
    """Keeps `purchases.csv`, about ten rows a second: how many purchases were due, refused and in
    MySQL since the generator's start, of all kinds of events that make one, how many different ones
    were ever seen in their topic (those of before the race too), and when Debezium sent the newest
    of these, by its own clock (0: none yet). A message that comes twice counts once."""

    name = "What Debezium has captured"

    def __init__(
        self,
        kafka: str,
        topic: str,
        kinds: Sequence[str],
        arrivals: ArrivalsProbe,
        folder: RunFolder,
        excused: Callable[[float], bool],
    ) -> None:
        super().__init__()
        self._topic, self._kinds = topic, kinds
        self._arrivals, self._excused = arrivals, excused
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "racetrack-purchases",
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )
        self._csv = folder.open_for_lines(FILE)
        self._ids: set[int] = set()
        self._sent_ms = 0
        self._failing_since_s: float | None = None

    def run(self) -> None:
        """Read, and write what the generator says next."""
        with self._csv, contextlib.closing(self._consumer):
            self._csv.write(TITLES)
            self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
            while not self.stopping.wait(JUST_BEFORE_THE_NEXT_S):
                self._take()
                # As of a time after it: so never more is captured than was due.
                if stats := self._arrivals.counts_after(clock.now_ms(), self.stopping):
                    self._write(stats)

    def _write(self, stats: Mapping[str, Any]) -> None:
        inserted = [stats[kind] for kind in self._kinds if kind in stats]
        counts = [sum(of[what] for of in inserted) for what in ("due", "refused", "done")]
        row = stats["now_ms"], *counts, len(self._ids), self._sent_ms
        self._csv.write(",".join(map(str, row)) + "\n")

    def _take(self) -> None:
        asked_s = time.monotonic()
        for message in self._consumer.consume(BATCH, 0):
            if error := message.error():
                if not (self._excused(asked_s) or self._may_pass(error)):
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
    """The id in a message's key: Confluent's header (a zero and the schema's id, five bytes), then
    Avro's only field, a long: seven bits a byte, the lowest first, its sign in the lowest bit."""
    if len(key) < HEADER_BYTES + 1:
        raise RacetrackError(f"A message of a purchase has no key that names it: {key!r}.")
    number = 0
    for place, byte in enumerate(key[HEADER_BYTES:]):
        number |= (byte & 0x7F) << 7 * place
    return (number >> 1) ^ -(number & 1)
