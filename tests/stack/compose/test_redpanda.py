"""Tests of Redpanda's configuration: it accepts writes, and retention takes effect."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from racetrack.config import REPO
from racetrack.install.versions import parse_env_file
from tests.stack.compose.conftest import Describe

MIB = 1 << 20
# Names and types of the properties that we set, as Redpanda publishes them.
LIST = Path(__file__).with_name("redpanda_properties.json")
TYPES = {"boolean": bool, "integer": int, "string": str, "array": list, "object": dict}
# A fake `rpk`, the program that starts Redpanda: it prints the configuration that it gets.
RPK = """#!/bin/sh
while [ "$1" != --config ]; do shift; done
cat "$2"
"""


@pytest.fixture
def configuration(described: Describe, tmp_path: Path) -> "Configuration":
    return Configuration(described, tmp_path)


class Configuration:
    """The redpanda.yaml that `rpk redpanda start` gets."""

    def __init__(self, described: Describe, folder: Path) -> None:
        self._described, self._folder = described, folder

    def __call__(self, **variables: str) -> Mapping[str, Any]:
        service = self._described("docker-compose.yml", **variables)["services"]["redpanda"]
        (script,) = service["command"]
        (self._folder / "rpk").write_text(RPK)
        (self._folder / "rpk").chmod(0o755)
        for there, here in (
            ("/tmp/", f"{self._folder}/"),  # first, as the repository may be below /tmp
            ("/etc/racetrack/", f"{REPO}/"),
            ("$$", "$"),  # compose doubles dollar signs in its output
        ):
            script = script.replace(there, here)
        done = subprocess.run(
            [*service["entrypoint"], script],
            env={"PATH": f"{self._folder}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: Mapping[str, Any] = yaml.safe_load(done.stdout)
        return found


def test_all_that_is_set_is_in_the_published_list_and_within_its_bounds(
    configuration: Configuration,
) -> None:
    published = json.loads(LIST.read_text())["properties"]
    found = configuration(KAFKA_RETENTION_BYTES="100000000")
    assert found.keys() <= published.keys()
    for section, properties in found.items():
        for name, value in properties.items():
            assert fault(published[section].get(name), value) == "", (section, name, value)


def test_the_list_is_of_the_version_in_env() -> None:
    pinned = parse_env_file((REPO / ".env").read_text())["REDPANDA_VERSION"]
    listed = json.loads(LIST.read_text())["version"]
    assert pinned.rpartition(".")[0] == listed.rpartition(".")[0]


def fault(known: Mapping[str, Any] | None, value: object) -> str:
    """Return the reason why Redpanda would refuse a property's value; "" if it accepts it."""
    if known is None:
        return "not published"
    if value is None and known.get("nullable"):
        return ""
    if type(value) is not TYPES[known["type"]]:
        return "the type"
    if isinstance(value, int):
        return out_of_bounds(known, value)
    entries = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    unknown = {key for entry in entries for key in entry} - set(known.get("of", []))
    return f"it has no {', '.join(sorted(unknown))}" if unknown else ""


def out_of_bounds(known: Mapping[str, Any], value: int) -> str:
    if value < known.get("minimum", value):
        return "less than it may be"
    if value > known.get("maximum", value):
        return "more than it may be"
    return "no multiple of what it must be" if value % known.get("multiple_of", 1) else ""


def test_it_takes_writes_on_the_disk_that_it_is_given(configuration: Configuration) -> None:
    """Redpanda requires 5 GiB of free space by default, which a tmpfs of 4 GiB never has."""
    assert configuration()["redpanda"]["storage_min_free_bytes"] == 10 * MIB  # the minimum


def test_all_is_kept_unless_asked(configuration: Configuration) -> None:
    assert "retention_bytes" not in configuration(KAFKA_RETENTION_BYTES="-1")["redpanda"]


@pytest.mark.parametrize("limit", ["0", "100000000"])
def test_it_keeps_as_much_of_a_partition_as_was_set(
    limit: str, configuration: Configuration
) -> None:
    with_limit = configuration(KAFKA_RETENTION_BYTES=limit)
    assert with_limit["redpanda"].pop("retention_bytes") == int(limit)
    assert with_limit == yaml.safe_load((REPO / "redpanda.yaml").read_text())
