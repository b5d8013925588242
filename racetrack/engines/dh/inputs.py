"""Inputs of the scripts in a Deephaven that runs elsewhere: addresses, and their variables."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from racetrack.config import REPO
from racetrack.kafka_endpoint import BOOTSTRAP, JAVA, PREFIX, REPLICATION
from racetrack.stack.contract import InternalEndpoints

# Java's property for the path of a file on this machine, and the one for its content.
PATH, CONTENT = "ssl.truststore.location", "ssl.truststore.certificates"
# Deephaven waits in its update cycle for the messages that it sends. At a run's end the broker is
# gone, so by Kafka's defaults all tables of the server would stand still for two minutes.
PATIENCE = {"request.timeout.ms": "5000", "delivery.timeout.ms": "10000", "max.block.ms": "10000"}


def addresses(of: InternalEndpoints) -> dict[str, str]:
    """Return the variables without secrets."""
    found = {BOOTSTRAP: of.kafka.servers, "SCHEMA_REGISTRY_URL": of.registry}
    if of.kafka.is_elsewhere:
        found[PREFIX] = of.kafka.topic_prefix
        found[REPLICATION] = str(of.kafka.replication_factor)
    return found


def given_to_scripts(of: InternalEndpoints, script: Path) -> dict[str, Any]:
    """Return what `in_server.load` needs, except the traced views. It contains secrets."""
    environment = addresses(of)
    reached = [*of.kafka.servers.split(","), of.registry.removeprefix("http://")]
    environment[JAVA] = json.dumps({**PATIENCE, **_without_files(of.kafka.java_properties)})
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
