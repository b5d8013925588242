"""Address of a Kafka cluster, and the properties with which all clients connect to it.

Properties have two forms: librdkafka's (Python, the load generator, kcat) and Java's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from racetrack import client_properties
from racetrack.config import Settings

# Variables of processes that connect to Kafka. The last two contain JSON objects with secrets.
BOOTSTRAP, PREFIX, REPLICATION = "KAFKA_BOOTSTRAP", "KAFKA_TOPIC_PREFIX", "KAFKA_REPLICATION_FACTOR"
LIBRDKAFKA, JAVA = "KAFKA_LIBRDKAFKA_CONFIG", "KAFKA_JAVA_CONFIG"


@dataclass(frozen=True)
class KafkaEndpoint:
    """A Kafka cluster as its clients need it. As text, it is the address only.

    Names of topics and consumer groups in this program have no prefix; a client adds the prefix
    with `topic` and removes it with `name_of`.
    """

    servers: str  # host:port, or several of them separated by commas
    topic_prefix: str = ""
    replication_factor: int = 1  # of new topics; -1: the broker's default
    # Properties for security, and those that the user passes on: secrets.
    librdkafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    java_properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.servers

    @property
    def is_elsewhere(self) -> bool:
        """True if the user provides the cluster; its topics then have a prefix."""
        return bool(self.topic_prefix)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Self:
        """Return the endpoint that `environment` described."""
        return cls(
            variables[BOOTSTRAP],
            variables.get(PREFIX, ""),
            int(variables.get(REPLICATION, "1")),
            json.loads(variables.get(LIBRDKAFKA, "{}")),
            json.loads(variables.get(JAVA, "{}")),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables from which another process gets this endpoint (`from_environment`).
        For a broker of the stack, they contain the address only. Otherwise they contain secrets, so
        they must not become arguments."""
        if not self.is_elsewhere:
            return {BOOTSTRAP: self.servers}
        return {
            BOOTSTRAP: self.servers,
            PREFIX: self.topic_prefix,
            REPLICATION: str(self.replication_factor),
            LIBRDKAFKA: json.dumps(dict(self.librdkafka_properties)),
            JAVA: json.dumps(dict(self.java_properties)),
        }

    def topic(self, name: str) -> str:
        """Return a topic's name in the cluster."""
        return f"{self.topic_prefix}{name}"

    def name_of(self, topic: str | None) -> str:
        """Return the name that this program uses for a topic of the cluster."""
        return (topic or "").removeprefix(self.topic_prefix)

    def librdkafka(self, properties: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the configuration of a librdkafka client: the properties of this cluster, and the
        client's own `properties`."""
        own = dict(properties or {})
        if "group.id" in own:
            own["group.id"] = self.topic(own["group.id"])
        return {**self.librdkafka_properties, "bootstrap.servers": self.servers, **own}

    def java(self) -> dict[str, str]:
        """Return the configuration of a Java client."""
        return {**self.java_properties, "bootstrap.servers": self.servers}


def elsewhere(settings: Settings) -> KafkaEndpoint | None:
    """Return the cluster that the user provides; None if the stack starts a broker.

    Raises:
        UsageError: the file of client properties, or one that it names, can't be used.
    """
    if not settings.kafka_bootstrap_servers:
        return None
    properties = client_properties.read(settings)
    return KafkaEndpoint(
        settings.kafka_bootstrap_servers,
        settings.kafka_topic_prefix,
        settings.kafka_replication_factor,
        properties,
        client_properties.for_java(properties),
    )
