"""Inputs of the scripts in a Deephaven that the user provides: addresses, and environment
variables."""

import json
from pathlib import Path
from typing import Any

from racetrack.config import REPO
from racetrack.kafka_endpoint import BOOTSTRAP, JAVA, PREFIX, REPLICATION
from racetrack.stack.contract import InternalEndpoints

# Deephaven's update cycle waits for the messages that it sends. When a run ends, its broker ends
# too; with Kafka's default timeouts, no table of the server would then be updated for two minutes.
PATIENCE = {"request.timeout.ms": "5000", "delivery.timeout.ms": "10000", "max.block.ms": "10000"}


def addresses(of: InternalEndpoints) -> dict[str, str]:
    """Return the environment variables with the addresses that the scripts use. They contain no
    secrets."""
    found = {BOOTSTRAP: of.kafka.servers, "SCHEMA_REGISTRY_URL": of.registry}
    if of.kafka.is_elsewhere:
        found[PREFIX] = of.kafka.topic_prefix
        found[REPLICATION] = str(of.kafka.replication_factor)
    return found


def given_to_scripts(of: InternalEndpoints, script: Path) -> dict[str, Any]:
    """Return the input of `in_server.load`. It contains secrets."""
    environment = addresses(of)
    reached = [*of.kafka.servers.split(","), of.registry.removeprefix("http://")]
    environment[JAVA] = json.dumps({**PATIENCE, **of.kafka.java_properties})
    return {
        "addresses": reached,
        "environment": environment,
        "scripts": {str(script.relative_to(REPO)): script.read_text()},
    }
