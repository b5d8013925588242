"""Secrets that give pods the passwords, certificates and keys of services that the user
provides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from racetrack import kafka_endpoint
from racetrack.config import Settings, content_of
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


def contents(settings: Settings) -> dict[str, str]:
    """Return setting → content of the file that it names.

    Raises:
        UsageError: a file can't be read.
    """
    return {name.upper(): text for name in FILES if (text := content_of(settings, name))}


def environment(settings: Settings) -> dict[str, str]:
    """Return settings for pods: the passwords, and the paths of the files that the settings name.

    Raises:
        UsageError: a file can't be read.
    """
    found = {name: f"{FOLDER}/{name}" for name in contents(settings)}
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


def secrets(settings: Settings) -> list[dict[str, Any]]:
    """Return a list that contains the Secret with the files; it is empty if the settings name no
    file."""
    found = contents(settings)
    return [secret(SECRET, found)] if found else []


def secret(name: str, content: Mapping[str, str]) -> dict[str, Any]:
    """Return a Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": dict(content),
    }


def mount(pod: dict[str, Any], settings: Settings) -> None:
    """Mount the files, if there are any, into all containers of a pod, given by its `spec`."""
    if not contents(settings):
        return
    pod.setdefault("volumes", []).append({"name": SECRET, "secret": {"secretName": SECRET}})
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        seen = {"name": SECRET, "mountPath": FOLDER, "readOnly": True}
        container.setdefault("volumeMounts", []).append(seen)
