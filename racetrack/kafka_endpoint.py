"""Address of a Kafka cluster, and the properties with which all clients connect to it.

This module is the only one that turns settings into properties of Kafka clients, in the two forms
that exist: librdkafka's (Python, the load generator, kcat) and Java's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from racetrack.config import Settings, content_of

JAAS = "org.apache.kafka.common.security"
LOGIN_MODULES = {
    "PLAIN": f"{JAAS}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{JAAS}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{JAAS}.scram.ScramLoginModule",
}
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
        UsageError: a file that a setting names can't be read.
    """
    if not settings.kafka_bootstrap_servers:
        return None
    passed_on = {name: each.get_secret_value() for name, each in settings.kafka_client.items()}
    return KafkaEndpoint(
        settings.kafka_bootstrap_servers,
        settings.kafka_topic_prefix,
        settings.kafka_replication_factor,
        {**_librdkafka(settings), **passed_on},
        {**_java(settings), **passed_on},
    )


def _librdkafka(settings: Settings) -> dict[str, str]:
    return {
        name: value
        for name, value in {
            "security.protocol": settings.kafka_security_protocol,
            "ssl.ca.location": settings.kafka_ssl_ca_location,
            "ssl.certificate.location": settings.kafka_ssl_certificate_location,
            "ssl.key.location": settings.kafka_ssl_key_location,
            "ssl.key.password": settings.kafka_ssl_key_password.get_secret_value(),
            "sasl.mechanism": settings.kafka_sasl_mechanism,
            "sasl.username": settings.kafka_sasl_username,
            "sasl.password": password(settings),
        }.items()
        if value
    }


def _java(settings: Settings) -> dict[str, str]:
    found: dict[str, str] = {"security.protocol": settings.kafka_security_protocol}
    if settings.kafka_ssl_ca_location:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.certificates"] = content_of(settings, "kafka_ssl_ca_location")
    if settings.kafka_ssl_certificate_location:
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.certificate.chain"] = content_of(
            settings, "kafka_ssl_certificate_location"
        )
        found["ssl.keystore.key"] = content_of(settings, "kafka_ssl_key_location")
        if password := settings.kafka_ssl_key_password.get_secret_value():
            found["ssl.key.password"] = password
    if mechanism := settings.kafka_sasl_mechanism:
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = f"{LOGIN_MODULES[mechanism]} required {_login(settings)};"
    return found


def _login(settings: Settings) -> str:
    """Return the options of the login module as text of a JAAS configuration."""
    user, secret = _quoted(settings.kafka_sasl_username), _quoted(password(settings))
    return f"username={user} password={secret}"


def _quoted(text: str) -> str:
    """Return a text as a value in a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def password(settings: Settings) -> str:
    """Return the password of Kafka, which may be in a file.

    Raises:
        UsageError: the file can't be read.
    """
    if settings.kafka_sasl_password_file:
        return content_of(settings, "kafka_sasl_password_file").strip()
    return settings.kafka_sasl_password.get_secret_value()
