"""The write check: a broker that refuses writes, or drops what is sent to it, is found before
anything is measured.

It takes a fraction of a second where all is well, and less than ENDS_WITHIN_S if the broker hangs.
A broker that is slow or overloaded passes: what that does to a run is the verdict's to say.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)

from racetrack.errors import RacetrackError
from racetrack.probes import arrived
from racetrack.probes.arrived import Arrivals, Counts, Missing, Youngest, YoungestReader
from racetrack.probes.broker import OffsetsError, TopicOffsets
from racetrack.probes.loadgen import Control
from racetrack.probes.own_record import TOPIC, NoAnswer, OwnRecord, Refused
from racetrack.stack.contract import Endpoints
from racetrack.stack.last_words import last_words
from racetrack.workload import SourceTopic

ENDS_WITHIN_S = 10.0
# The longest way: a record, 3.0, and the end offsets, 1.0; pageviews, 2.5 (arrived.STILL_AFTER_S),
# and the last look at them, 0.5 (arrived.READ_WITHIN_S); a second record, 1.0, and the end offsets
# after it, 0.5; the topic's limits, 0.75. That is 9.25 s; the rest is for closing connections.
# Or the pageviews a second time, 0.5 and 3.0, if a first time was over after TWICE_BEFORE_S.
WRITTEN_WITHIN_S, OFFSETS_WITHIN_S = 3.0, 1.0
TWICE_BEFORE_S = 3.5
AGAIN_WITHIN_S, OFFSETS_AGAIN_WITHIN_S = 1.0, 0.5
LIMITS_WITHIN_S = 0.75

# Why a broker refuses, by its own error, and what helps.
TOO_LARGE = (
    "a record may not be as large as that there (max.message.bytes of the topic, or the broker's"
    " default for it). Raise it"
)
TOO_FEW = (
    "the topic has fewer replicas in sync than min.insync.replicas asks for. Set it to 1 on a"
    " broker that stands alone"
)
DISK = (
    "its disk is full or broken, or has less free space than it wants to keep (Redpanda:"
    " storage_min_free_bytes). Make room, or lower that limit"
)
FORBIDDEN = "this user may not write there. Allow it (ACLs)"
REASONS: Mapping[int, str] = {
    KafkaError.MSG_SIZE_TOO_LARGE: TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    KafkaError.NOT_ENOUGH_REPLICAS: TOO_FEW,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: TOO_FEW,
    KafkaError.KAFKA_STORAGE_ERROR: DISK,
    KafkaError.BROKER_NOT_AVAILABLE: DISK,  # what Redpanda answers then
    KafkaError.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
    KafkaError.INVALID_REPLICATION_FACTOR: "its default replication factor is above the number of"
    " brokers. Set that to 1",
    KafkaError.POLICY_VIOLATION: "a policy of the broker forbids it. Mend that",
}
NOT_KNOWN = "its own words are below. Mend what they name"
LIMITS = ("max.message.bytes", "min.insync.replicas")


class WriteCheckError(RacetrackError):
    """The broker does not keep what is written to it; the message says why, as far as is known."""


class WriteCheck:
    """Checks one broker and its generator. `meanwhile` is called at every look and may raise."""

    def __init__(
        self,
        where: Endpoints,
        topic: SourceTopic,
        broker_log: Path,
        say: Callable[[str], None],
        meanwhile: Callable[[], None],
    ) -> None:
        self._where, self._topic, self._log = where, topic, broker_log
        self._say, self._meanwhile = say, meanwhile
        self._own = OwnRecord(where.kafka, meanwhile)

    def run(self) -> None:
        """Write a record with acks=all and read it back; then see that pageviews arrive.

        Raises:
            WriteCheckError: the broker refuses, does not answer, or drops pageviews.
        """
        began_s = time.monotonic()
        unanswered = self._unanswered(WRITTEN_WITHIN_S)
        with closing(_Real(self._where, self._topic)) as where:
            give_up = began_s + WRITTEN_WITHIN_S + OFFSETS_WITHIN_S
            arrivals = self._begin(where, give_up, unanswered)
            missing = arrived.wait(arrivals, arrived.STILL_AFTER_S, self._meanwhile)
            if not (missing or arrivals.proven or unanswered) and (
                time.monotonic() < began_s + TWICE_BEFORE_S
            ):
                arrivals, missing = self._a_second_time(where, arrivals)
            if unanswered is not None and not arrivals.any_arrived:
                raise self._no_answer(unanswered, "no pageview arrived")
            if missing and missing.still:
                missing = self._look_again(arrivals)
        if missing:
            raise self._dropping(missing)
        if unanswered is not None:
            self._say(f"the broker did not answer a write in {WRITTEN_WITHIN_S} s ({unanswered})")
        if not arrivals.proven:
            self._say(arrivals.unproven())

    def _unanswered(self, within_s: float) -> str | None:
        """Write a record; what the client saw if there was no answer."""
        try:
            self._own.there_and_back(within_s)
        except Refused as refused:
            raise self._refusal(refused) from None
        except NoAnswer as silence:
            return str(silence)
        return None

    def _begin(self, where: "_Real", give_up: float, unanswered: str | None) -> Arrivals:
        try:
            return Arrivals(where, max(OFFSETS_WITHIN_S, give_up - time.monotonic()))
        except OffsetsError as error:
            if unanswered is None:
                raise self._error(str(error)) from error
            raise self._no_answer(unanswered, "it does not tell its end offsets") from error

    def _a_second_time(self, where: "_Real", first: Arrivals) -> tuple[Arrivals, Missing | None]:
        """What came the first time may be what was sent before the broker began to drop."""
        try:
            arrivals = Arrivals(where, OFFSETS_AGAIN_WITHIN_S)
        except OffsetsError:
            return first, None  # what was seen the first time is what is said
        return arrivals, arrived.wait(arrivals, arrived.STILL_AFTER_S, self._meanwhile)

    def _look_again(self, arrivals: Arrivals) -> Missing | None:
        """A broker that takes another's record meanwhile is not just slow."""
        if (seen := self._unanswered(AGAIN_WITHIN_S)) is not None:
            self._say(f"the broker did not answer another write in {AGAIN_WITHIN_S} s ({seen})")
            return None
        try:
            arrivals.look_at_counts(OFFSETS_AGAIN_WITHIN_S)
        except OffsetsError as error:
            self._say(str(error))
            return None
        return arrivals.still()

    def _no_answer(self, unanswered: str, besides: str) -> WriteCheckError:
        return self._error(
            f"The broker at {self._where.kafka} does not answer a write: a record in {TOPIC} with"
            f" acks=all was not there {WRITTEN_WITHIN_S} s later ({unanswered}), and {besides}. Its"
            " disk may be full, it may hang, or its advertised address leads nowhere. Mend that and"
            " run again."
        )

    def _refusal(self, refused: Refused) -> WriteCheckError:
        why = REASONS.get(refused.code, NOT_KNOWN)
        return self._error(
            f"The broker at {self._where.kafka} refuses writes: to a record in {TOPIC} with"
            f" acks=all it answered {refused}. So {why}, and run again."
        )

    def _dropping(self, missing: Missing) -> WriteCheckError:
        meanwhile = ", while a record of the harness's own was written with acks=all"
        return self._error(
            f"The broker at {self._where.kafka} does not keep the pageviews that it is sent:"
            f" {missing.what}{meanwhile if missing.still else ''}. With acks=0 it tells the sender"
            " no reason. Batches may be larger than it takes (max.message.bytes), or its disk may"
            f" be full.{self._limits()} Mend that and run again."
        )

    def _limits(self) -> str:
        """The limits that were set, if the broker tells them."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic.name)
        client = AdminClient({"bootstrap.servers": self._where.kafka, "log_level": 0})
        asked = client.describe_configs([resource], request_timeout=LIMITS_WITHIN_S)
        try:
            told = asked[resource].result(LIMITS_WITHIN_S)
        except (KafkaException, TimeoutError):
            return ""  # it is the broker that is in trouble, and its log is shown
        limits = ", ".join(f"{name}={told[name].value}" for name in LIMITS if name in told)
        return f" Its settings for {self._topic.name}: {limits}." if limits else ""

    def _error(self, text: str) -> WriteCheckError:
        return WriteCheckError(f"{text}\nThe broker's last words:\n{last_words(self._log)}")


class _Real:
    """The generator and the broker of a stack; see `arrived.Where`."""

    def __init__(self, where: Endpoints, topic: SourceTopic) -> None:
        self._control = Control(where.loadgen_host, where.loadgen_port)
        self._broker = TopicOffsets(where.kafka, topic.name)
        self._reader = YoungestReader(where.kafka, topic)

    def counts(self) -> Counts:
        return Counts.of(self._control.stats(quietly=True))

    def end_offsets(self, within_s: float) -> list[int]:
        return self._broker.end_offsets(within_s)

    def youngest(self, end_offsets: Mapping[int, int]) -> Mapping[int, Youngest]:
        return self._reader.read(end_offsets)

    def close(self) -> None:
        self._reader.close()
        self._control.close()
