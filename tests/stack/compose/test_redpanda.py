"""Tests of Redpanda's configuration: it accepts writes, and retention takes effect."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from racetrack.config import REPO
from racetrack.install.versions import parse_env_file
from tests.compose_files import service

Configuration = Callable[..., Mapping[str, Any]]
MIB = 1 << 20
# A schema of the properties that we set, as Redpanda publishes them.
SCHEMA = Path(__file__).with_name("redpanda_properties.json")
# A fake `rpk`, the program that starts Redpanda: it prints the configuration that it gets.
RPK = """#!/bin/sh
while [ "$1" != --config ]; do shift; done
cat "$2"
"""


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    """Return a function that returns the redpanda.yaml which `rpk redpanda start` gets."""
    (tmp_path / "rpk").write_text(RPK)
    (tmp_path / "rpk").chmod(0o755)

    def read(**variables: str) -> Mapping[str, Any]:
        redpanda = service("redpanda", **variables)
        (script,) = redpanda["command"]
        for there, here in (
            ("/tmp/", f"{tmp_path}/"),  # first, as the repository may be below /tmp
            ("/etc/racetrack/", f"{REPO}/"),
            ("$$", "$"),  # compose doubles dollar signs in its output
        ):
            script = script.replace(there, here)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run(
            [*redpanda["entrypoint"], script], env=environment, capture_output=True, check=True
        )
        found: Mapping[str, Any] = yaml.safe_load(done.stdout)
        return found

    return read


def test_all_that_is_set_is_published_for_the_pinned_version_and_within_its_bounds(
    configuration: Configuration,
) -> None:
    schema = json.loads(SCHEMA.read_text())
    pinned = parse_env_file((REPO / ".env").read_text())["REDPANDA_VERSION"]
    assert pinned.rpartition(".")[0] == schema["version"].rpartition(".")[0]
    with_limit = configuration(KAFKA_RETENTION_BYTES="100000000")
    Draft202012Validator(schema).validate(with_limit)
    assert with_limit["redpanda"]["retention_bytes"] == 100_000_000
    # By default, it requires 5 GiB of free space, which a tmpfs of 4 GiB never has.
    assert with_limit["redpanda"]["storage_min_free_bytes"] == 10 * MIB  # the minimum
    assert "retention_bytes" not in configuration(KAFKA_RETENTION_BYTES="-1")["redpanda"]
