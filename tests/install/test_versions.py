"""Tests of reading versions from .env without any library."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from racetrack import plugins
from racetrack.install.versions import names, parse_env_file, read_versions

TEXT = """
# KAFKA_VERSION=0.1
KAFKA_VERSION=4.3.1
  APICURIO_VERSION = 2.6  # why this one
export DEBEZIUM_VERSION="3.6.1.Final"
QUOTED='42.7' # quoted
WITH_HASH=a#b
EMPTY=
not an assignment
"""


def test_reads_what_dotenv_reads(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(TEXT)
    expected = {k: v for k, v in dotenv_values(tmp_path / ".env").items() if v is not None}
    assert parse_env_file(TEXT) == expected
    assert (expected["APICURIO_VERSION"], expected["QUOTED"]) == ("2.6", "42.7")


@pytest.mark.parametrize("file", [plugins.REPO / ".env", *plugins.env_files()], ids=str)
def test_reads_the_repositorys_own_files_as_dotenv_does(file: Path) -> None:
    assert parse_env_file(file.read_text()) == dotenv_values(file)


def test_the_environment_wins() -> None:
    in_files = {**dict.fromkeys(names(), "1.0"), **parse_env_file(TEXT)}
    versions = read_versions(in_files, {"KAFKA_VERSION": "9.9", "DEBEZIUM_VERSION": ""})
    assert versions["KAFKA_VERSION"] == "9.9"
    assert versions["DEBEZIUM_VERSION"] == "3.6.1.Final"
    assert tuple(versions) == names()
