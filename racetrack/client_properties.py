"""The user's file of client properties of Kafka (`KAFKA_CLIENT_PROPERTIES`).

The file has librdkafka's names, one `name=value` a line. `COMMON` lists all properties that can be
in it, with their names in Java's clients: a further property is one more line there.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

from racetrack.config import Settings, content_of, secret_content_of
from racetrack.errors import UsageError

SETTING = "kafka_client_properties"
JAAS = "org.apache.kafka.common.security"
LOGIN_MODULES = {
    "PLAIN": f"{JAAS}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{JAAS}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{JAAS}.scram.ScramLoginModule",
}
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# Properties with the path of a PEM file → the property of Java's clients that has its content.
PEM = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
LOGIN = ("sasl.username", "sasl.password")  # Java's clients have them in sasl.jaas.config
SECRETS = ("sasl.password", "ssl.key.password")
# Property of librdkafka → of Java's clients, with the same values.
COMMON = {
    **PEM,
    **dict.fromkeys(LOGIN, "sasl.jaas.config"),
    "security.protocol": "security.protocol",
    "ssl.key.password": "ssl.key.password",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "sasl.mechanism": "sasl.mechanism",
    "client.id": "client.id",
    "client.dns.lookup": "client.dns.lookup",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "metadata.max.age.ms": "metadata.max.age.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
}
# Beginnings of Java's names → what librdkafka has instead.
JAVA_ONLY = {
    "ssl.truststore.": "Use ssl.ca.location with a PEM file",
    "ssl.keystore.": "Use ssl.certificate.location and ssl.key.location with PEM files",
    "sasl.jaas.config": "Use sasl.username and sasl.password",
    "request.timeout.ms": "Use socket.timeout.ms",
    "send.buffer.bytes": "Use socket.send.buffer.bytes",
    "receive.buffer.bytes": "Use socket.receive.buffer.bytes",
}
RESERVED = {
    "bootstrap.servers": "The setting KAFKA_BOOTSTRAP_SERVERS has it",
    "metadata.broker.list": "The setting KAFKA_BOOTSTRAP_SERVERS has it",
    "group.id": "Each client has its own, which begins with KAFKA_TOPIC_PREFIX",
}


def read(settings: Settings) -> dict[str, str]:
    """Return the properties of librdkafka in the user's file; {} without a file.

    Raises:
        UsageError: the file can't be used; the message names the line or the property.
    """
    properties: dict[str, str] = {}
    path = settings.kafka_client_properties
    for number, line in enumerate(content_of(settings, SETTING).splitlines(), 1):
        if not (text := line.strip()) or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        name = "sasl.mechanism" if name == "sasl.mechanisms" else name
        if not (equals and re.fullmatch(r"[a-z][a-z0-9._-]*", name)):
            # The line may be part of a key, so it is not quoted.
            raise _unusable(path, f"line {number} is not of the form name=value")
        if why := _why_unknown(name):
            raise _unusable(path, f"{name} (line {number}) {why}")
        if name in properties:
            raise _unusable(path, f"{name} (line {number}) is there twice")
        properties[name] = _absolute(value, path) if name in PEM else value
    if any(properties.get(name) for name in SECRETS):
        secret_content_of(settings, SETTING)
    properties = {name: value for name, value in properties.items() if value}
    if path:
        properties["security.protocol"] = properties.get("security.protocol", "PLAINTEXT").upper()
        if why := _contradiction(properties):
            raise _unusable(path, why)
    return properties


def for_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties of librdkafka as those of Java's clients. They contain the content of PEM
    files, since clients may run on another machine.

    Raises:
        UsageError: a PEM file can't be read.
    """
    java = {
        COMMON[name]: value
        for name, value in properties.items()
        if name not in PEM and name not in LOGIN
    }
    java.setdefault("security.protocol", "PLAINTEXT")
    for name, content in pem_files(properties).items():
        java[PEM[name]] = content
        java[f"{'.'.join(PEM[name].split('.')[:2])}.type"] = "PEM"
    if java.get("ssl.endpoint.identification.algorithm") == "none":
        java["ssl.endpoint.identification.algorithm"] = ""
    for name in ("send.buffer.bytes", "receive.buffer.bytes"):
        if java.get(name) == "0":  # librdkafka's "as the system has it"
            java[name] = "-1"
    if mechanism := properties.get("sasl.mechanism"):
        user, password = (_quoted(properties.get(name, "")) for name in LOGIN)
        login = f"username={user} password={password}"
        java["sasl.jaas.config"] = f"{LOGIN_MODULES[mechanism]} required {login};"
    return java


def pem_files(properties: Mapping[str, str]) -> dict[str, str]:
    """Return property → content of the PEM file that it names.

    Raises:
        UsageError: a file can't be read.
    """
    contents = {}
    for name in filter(properties.__contains__, PEM):
        try:
            contents[name] = Path(properties[name]).read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "it is no PEM file")
            raise UsageError(
                f"KAFKA_CLIENT_PROPERTIES: {name}: {properties[name]} can't be read ({why}). Name"
                " a PEM file that this user may read."
            ) from None
    return contents


def _why_unknown(name: str) -> str:
    """Return why a property can't be in the file; "" if it can."""
    if name in COMMON:
        return ""
    for names, what in (
        (RESERVED, "can't be set here"),
        (JAVA_ONLY, "is a name of Java's clients, and the file has librdkafka's"),
    ):
        for start, remedy in names.items():
            if name.startswith(start):
                return f"{what}. {remedy}"
    near = difflib.get_close_matches(name, COMMON, n=1, cutoff=0.8)
    hint = f". Did you mean {near[0]}?" if near else f". These are: {', '.join(COMMON)}"
    return f"is not a property that librdkafka and Java's clients have in common{hint}"


def _contradiction(properties: Mapping[str, str]) -> str:
    """Return why values are wrong or contradict each other; "" if they don't."""
    protocol, mechanism = properties["security.protocol"], properties.get("sasl.mechanism", "")
    if protocol not in PROTOCOLS:
        return f"security.protocol is not one of {', '.join(PROTOCOLS)}"
    if mechanism and mechanism not in LOGIN_MODULES:
        return f"sasl.mechanism is not one of {', '.join(LOGIN_MODULES)}"
    if protocol.startswith("SASL_") != bool(mechanism):
        return (
            f"security.protocol={protocol} and sasl.mechanism={mechanism} don't fit: a mechanism"
            " is for SASL_SSL and SASL_PLAINTEXT, which need one"
        )
    if ("ssl.certificate.location" in properties) != ("ssl.key.location" in properties):
        return "ssl.certificate.location and ssl.key.location need each other"
    return ""


def _unusable(path: str, why: str) -> UsageError:
    return UsageError(f"KAFKA_CLIENT_PROPERTIES: {path}: {why.rstrip('.')}.".replace("?.", "?"))


def _absolute(value: str, path: str) -> str:
    """Return the absolute path of a file; a relative one starts at the folder of the properties."""
    return str(Path(path).parent / Path(value).expanduser()) if value else ""


def _quoted(text: str) -> str:
    """Return a text as a value in a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
