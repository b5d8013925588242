"""Secrets that give pods the passwords, certificates and keys of services that the user
provides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from racetrack import client_properties
from racetrack.config import FILES_IN_PODS, Settings, content_of
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack import own_registry

SECRET, FOLDER = "own-files", FILES_IN_PODS
PROPERTIES = client_properties.SETTING.upper()


def contents(settings: Settings) -> dict[str, str]:
    """Return setting, or property of Kafka's clients → content of the file that it names, without
    files that are empty.

    Raises:
        UsageError: a file can't be read.
    """
    properties = client_properties.read(settings)
    lines = (f"{name}={value}\n" for name, value in _in_pods(properties).items())
    found = {
        **client_properties.pem_files(properties),
        PROPERTIES: "".join(lines),
        "REGISTRY_PASSWORD_FILE": own_registry.password(settings),
        "REGISTRY_SSL_CA_LOCATION": content_of(settings, "registry_ssl_ca_location"),
    }
    return {name: content for name, content in found.items() if content}


def environment(settings: Settings) -> dict[str, str]:
    """Return settings for pods: the paths of the files that the settings name.

    Raises:
        UsageError: a file can't be read.
    """
    names = (name for name in contents(settings) if name.isupper())  # others are properties
    return {name: f"{FOLDER}/{name}" for name in names}


def as_in_pods(kafka: KafkaEndpoint) -> KafkaEndpoint:
    """Return a Kafka with the paths of files replaced by those in pods. Only librdkafka's
    properties contain paths."""
    return replace(kafka, librdkafka_properties=_in_pods(kafka.librdkafka_properties))


def _in_pods(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties of librdkafka with the paths of files in pods."""
    return {
        name: f"{FOLDER}/{name}" if name in client_properties.PEM else value
        for name, value in properties.items()
    }


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
