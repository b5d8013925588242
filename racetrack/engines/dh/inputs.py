"""Inputs of the scripts in a Deephaven that runs elsewhere: addresses, and their variables."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from racetrack import kafka_endpoint
from racetrack.config import REPO, Settings
from racetrack.kafka_endpoint import BOOTSTRAP, JAVA, PREFIX, REPLICATION
from racetrack.stack import net

# Java's property for the path of a file on this machine, and the one for its content.
PATH, CONTENT = "ssl.truststore.location", "ssl.truststore.certificates"
# Deephaven waits in its update cycle for the messages that it sends. At a run's end the broker is
# gone, so by Kafka's defaults all tables of the server would stand still for two minutes.
PATIENCE = {"request.timeout.ms": "5000", "delivery.timeout.ms": "10000", "max.block.ms": "10000"}


def addresses(settings: Settings) -> dict[str, str]:
    """Return the variables without secrets. The services that the stack starts have the address
    that the broker advertises."""
    here = settings.advertised_address
    broker = net.endpoint(here, settings.kafka_port)
    registry = net.endpoint(here, settings.schema_registry_port)
    found = {BOOTSTRAP: broker, "SCHEMA_REGISTRY_URL": f"http://{registry}"}
    if kafka := kafka_endpoint.elsewhere(settings):
        found[BOOTSTRAP] = kafka.servers
        found[PREFIX] = kafka.topic_prefix
        found[REPLICATION] = str(kafka.replication_factor)
    return found


def given_to_scripts(settings: Settings, script: Path) -> dict[str, Any]:
    """Return what `in_server.load` needs, except the traced views. It contains secrets."""
    environment = addresses(settings)
    registry = environment["SCHEMA_REGISTRY_URL"].removeprefix("http://")
    reached = [*environment[BOOTSTRAP].split(","), registry]
    kafka = kafka_endpoint.elsewhere(settings)
    properties = _without_files(kafka.java_properties) if kafka else {}
    environment[JAVA] = json.dumps({**PATIENCE, **properties})
    return {
        "addresses": reached,
        "environment": environment,
        "scripts": {str(script.relative_to(REPO)): script.read_text()},
    }


def _without_files(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a Java client with the content of files instead of their paths."""
    found = dict(properties)
    if path := found.pop(PATH, ""):
        found[CONTENT] = Path(path).read_text()
    return found
