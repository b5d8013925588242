"""Reading versions out of .env without any library."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from racetrack.errors import SetupError
from racetrack.install.versions import NAMES, REPO, parse_env_file, read_versions

TEXT = """
# KAFKA_VERSION=0.1
KAFKA_VERSION=4.3.1
  APICURIO_VERSION = 2.6  # why this one
export DEBEZIUM_VERSION="3.6.1.Final"
DEEPHAVEN_VERSION='42.7' # quoted
FLINK_VERSION=2.3.0
FLINK_KAFKA_VERSION=5.0.0-2.2
WITH_HASH=a#b
EMPTY=
not an assignment
"""


def test_reads_what_dotenv_reads(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(TEXT)
    expected = {k: v for k, v in dotenv_values(tmp_path / ".env").items() if v is not None}
    assert parse_env_file(TEXT) == expected
    assert expected["APICURIO_VERSION"] == "2.6"


def test_reads_the_repositorys_own_file_as_dotenv_does() -> None:
    assert parse_env_file((REPO / ".env").read_text()) == dotenv_values(REPO / ".env")


def test_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(TEXT)
    versions = read_versions(tmp_path / ".env", {"KAFKA_VERSION": "9.9", "DEBEZIUM_VERSION": ""})
    assert versions["KAFKA_VERSION"] == "9.9"
    assert versions["DEBEZIUM_VERSION"] == "3.6.1.Final"
    assert tuple(versions) == NAMES


def test_a_missing_version_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KAFKA_VERSION=4.3.1\n")
    with pytest.raises(SetupError, match="APICURIO_VERSION, DEBEZIUM_VERSION, DEEPHAVEN_VERSION"):
        read_versions(tmp_path / ".env", {})
