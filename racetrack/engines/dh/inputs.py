"""Inputs of the scripts in a Deephaven that the user provides: addresses, and environment
variables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from racetrack import plugins
from racetrack.config import Settings
from racetrack.kafka_endpoint import BOOTSTRAP, JAVA, PREFIX, REPLICATION
from racetrack.stack.contract import InternalEndpoints
from racetrack.workloads.contract import find_workload

REGISTRY = "SCHEMA_REGISTRY_URL"

# Deephaven's update cycle waits for the messages that it sends. When a run ends, its broker ends
# too; with Kafka's default timeouts, no table of the server would then be updated for two minutes.
PATIENCE = {"request.timeout.ms": "5000", "delivery.timeout.ms": "10000", "max.block.ms": "10000"}


def addresses(endpoints: InternalEndpoints) -> dict[str, str]:
    """Return the environment variables with the addresses that the scripts use. They contain no
    secrets."""
    addresses_by_name = {BOOTSTRAP: endpoints.kafka.servers, REGISTRY: endpoints.registry}
    if endpoints.kafka.is_elsewhere:
        addresses_by_name[PREFIX] = endpoints.kafka.topic_prefix
        addresses_by_name[REPLICATION] = str(endpoints.kafka.replication_factor)
    return addresses_by_name


def variables(settings: Settings) -> dict[str, str]:
    """Return the environment variables with the workload's settings that its scripts read."""
    name = find_workload(settings.workload).watermark_delay
    return {name.upper(): str(getattr(settings, name))} if name else {}


def given_to_scripts(
    endpoints: InternalEndpoints, programs: Sequence[Path], variables: Mapping[str, str]
) -> dict[str, Any]:
    """Return the input of `in_server.load`. It contains secrets."""
    scripts = {f"scripts/{name_of(path)}": path.read_text() for path in programs}
    reached = endpoints.kafka.servers.split(",")
    if any(REGISTRY in text for text in scripts.values()):
        reached.append(endpoints.registry.removeprefix("http://"))
    java = json.dumps({**PATIENCE, **endpoints.kafka.java_properties})
    return {
        "addresses": reached,
        "environment": {**addresses(endpoints), **variables, JAVA: java},
        "scripts": scripts,
    }


def name_of(program: Path) -> str:
    """Return the path of a program within the folder of all scripts."""
    return program.relative_to(plugins.SCRIPTS).as_posix()


def names_there(programs: Sequence[Path], runtime: str) -> list[str]:
    """Return the paths of programs within the folder of scripts that the stack's server has. On
    Kubernetes it is a ConfigMap, which has no folders."""
    names = [name_of(path) for path in programs]
    return [name.replace("/", ".") for name in names] if runtime == "kubernetes" else names
