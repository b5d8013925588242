"""Secrets that give pods the passwords, certificates and keys of services that the user
provides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from racetrack import kafka_endpoint
from racetrack.config import Settings, content_of
from racetrack.errors import UsageError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack import own_registry

SECRET, FOLDER = "own-files", "/etc/racetrack/own"
# Settings that contain the path of a file on this machine. In the Secret, the file is named after
# the setting.
FILES = (
    "kafka_ssl_ca_location",
    "kafka_ssl_certificate_location",
    "kafka_ssl_key_location",
    "registry_ssl_ca_location",
)
# A harness that runs as a Job needs one more file.
FILES_OF_JOB = (*FILES, "prometheus_token_file")


def require_usable(settings: Settings) -> None:
    """Check that pods can use the settings of services that the user provides.

    Raises:
        UsageError: a setting contains a command to run on this machine, or a file can't be read.
    """
    if settings.kafka_sasl_oauthbearer_token_command.get_secret_value():
        raise UsageError(
            "KAFKA_SASL_OAUTHBEARER_TOKEN_COMMAND: pods can't run a command of this machine. Use a"
            " mechanism with a password, or a certificate."
        )
    contents(settings)


def contents(settings: Settings, names: Sequence[str] = FILES) -> dict[str, str]:
    """Return setting → content of the file that it names.

    Raises:
        UsageError: a file can't be read.
    """
    return {name.upper(): text for name in names if (text := content_of(settings, name))}


def environment(settings: Settings, names: Sequence[str] = FILES) -> dict[str, str]:
    """Return settings for pods: the passwords, and the paths of the files that the settings name.

    Raises:
        UsageError: a file can't be read.
    """
    found = {name: f"{FOLDER}/{name}" for name in contents(settings, names)}
    if settings.kafka_bootstrap_servers:
        found |= {
            "KAFKA_SASL_PASSWORD": kafka_endpoint.password(settings),
            "KAFKA_SASL_PASSWORD_FILE": "",
            "REGISTRY_PASSWORD": own_registry.password(settings),
            "REGISTRY_PASSWORD_FILE": "",
        }
    return found


def as_in_pods(kafka: KafkaEndpoint, settings: Settings) -> KafkaEndpoint:
    """Return a Kafka with the paths of files replaced by those in pods. Only librdkafka's
    properties contain paths."""
    moved = {getattr(settings, name.lower()): f"{FOLDER}/{name}" for name in contents(settings)}
    properties = kafka.librdkafka_properties.items()
    return replace(
        kafka, librdkafka_properties={name: moved.get(value, value) for name, value in properties}
    )


def secrets(settings: Settings, names: Sequence[str] = FILES) -> list[dict[str, Any]]:
    """Return a list that contains the Secret with the files; it is empty if the settings name no
    file."""
    found = contents(settings, names)
    return [secret(SECRET, found)] if found else []


def secret(name: str, content: Mapping[str, str]) -> dict[str, Any]:
    """Return a Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": dict(content),
    }


def mount(pod: dict[str, Any], settings: Settings, names: Sequence[str] = FILES) -> None:
    """Mount the files, if there are any, into all containers of a pod, given by its `spec`."""
    if not contents(settings, names):
        return
    pod.setdefault("volumes", []).append({"name": SECRET, "secret": {"secretName": SECRET}})
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        seen = {"name": SECRET, "mountPath": FOLDER, "readOnly": True}
        container.setdefault("volumeMounts", []).append(seen)
