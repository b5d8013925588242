"""A Kafka that the user provides, and the topics and consumer groups that a run creates there.

Their names begin with KAFKA_TOPIC_PREFIX. A run starts only if no such topic exists, so at the end
of the run all names with the prefix are the run's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from racetrack import kafka_endpoint
from racetrack.config import Settings
from racetrack.errors import BusyError, SetupError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack import own_kafka_check
from racetrack.stack.elsewhere import Passed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

ANSWER_S = 10.0


@dataclass(frozen=True)
class Removed:
    """Result of a removal: the number of removed topics and groups, and what remains and why."""

    count: int
    remaining: Sequence[str] = ()

    def lines(self, kafka: KafkaEndpoint) -> list[str]:
        """Return lines for the user; none if there was nothing to remove."""
        done = f"removed {self.count} topics and consumer groups from {kafka}"
        left = f"not removed from {kafka}: {', '.join(self.remaining)}. Remove them yourself."
        return [*([done] if self.count else []), *([left] if self.remaining else [])]


class OwnNames:
    """Topics and consumer groups whose names begin with a prefix."""

    def __init__(self, kafka: KafkaEndpoint) -> None:
        self._kafka = kafka

    def require_none(self) -> None:
        """Check that Kafka answers, and that no topic begins with the prefix.

        Raises:
            SetupError: Kafka does not answer.
            BusyError: there are such topics.
        """
        from confluent_kafka import KafkaException

        try:
            found = self._topics(self._admin())
        except KafkaException as error:
            raise SetupError(
                f"KAFKA_BOOTSTRAP_SERVERS: {self._kafka} does not answer: {error.args[0].str()}."
                " Check the address and the file KAFKA_CLIENT_PROPERTIES"
            ) from None
        if found:
            raise BusyError(
                f"In Kafka at {self._kafka}, {len(found)} topics begin with"
                f" {self._kafka.topic_prefix}, such as {found[0]}: another run uses this prefix, or"
                " was killed. Set another KAFKA_TOPIC_PREFIX, or remove these topics with"
                " `./race down`."
            )

    def remove(self) -> Removed:
        """Remove all topics and groups with the prefix."""
        from confluent_kafka import KafkaException

        remaining, count = [], 0
        # Keep a reference, because requests are lost if the client is garbage-collected.
        admin = self._admin()
        kinds = {"topics": self._remove_topics, "consumer groups": self._remove_groups}
        for kind, remove in kinds.items():
            try:
                futures = remove(admin)
            except KafkaException as error:
                remaining.append(f"{kind} {self._kafka.topic_prefix}* ({error.args[0].str()})")
                continue
            for name, done in futures.items():
                try:
                    done.result(ANSWER_S)
                    count += 1
                except (KafkaException, TimeoutError) as error:
                    remaining.append(f"{name} ({error})")
        return Removed(count, remaining)

    def _admin(self) -> "AdminClient":
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._kafka.librdkafka({"log_level": 0}))

    def _topics(self, admin: "AdminClient") -> list[str]:
        found = admin.list_topics(timeout=ANSWER_S).topics
        return sorted(name for name in found if name.startswith(self._kafka.topic_prefix))

    def _remove_topics(self, admin: "AdminClient") -> "dict[str, Future[None]]":
        names = self._topics(admin)
        return admin.delete_topics(names, operation_timeout=ANSWER_S) if names else {}

    def _remove_groups(self, admin: "AdminClient") -> "dict[str, Future[None]]":
        found = admin.list_consumer_groups(request_timeout=ANSWER_S).result(ANSWER_S).valid
        names = [group.group_id for group in found]
        own = [name for name in names if name.startswith(self._kafka.topic_prefix)]
        return admin.delete_consumer_groups(own, request_timeout=ANSWER_S) if own else {}


class _Broker:
    """Implementation of `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "broker", "Kafka", "KAFKA_BOOTSTRAP_SERVERS", False

    def address(self, settings: Settings) -> str:
        return settings.kafka_bootstrap_servers

    def check(self, settings: Settings) -> Passed:
        kafka = _endpoint(settings)
        passed = own_kafka_check.check(kafka)
        OwnNames(kafka).require_none()
        return passed

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:  # noqa: ARG002
        """Remove topics and groups whose names begin with the prefix."""
        kafka = _endpoint(settings)
        return OwnNames(kafka).remove().lines(kafka)


def _endpoint(settings: Settings) -> KafkaEndpoint:
    if found := kafka_endpoint.elsewhere(settings):
        return found
    raise ValueError("KAFKA_BOOTSTRAP_SERVERS is empty")


ELSEWHERE = _Broker()
