"""Tests of reading versions from .env without any library."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from racetrack import plugins
from racetrack.install.versions import names, parse_env_file, read_versions

TEXT = 'KAFKA_VERSION=4.3.1\nexport DEBEZIUM_VERSION="3.6.1.Final"  # why this one\n'


@pytest.mark.parametrize("file", [plugins.REPO / ".env", *plugins.env_files()], ids=str)
def test_reads_the_repositorys_own_files_as_dotenv_does(file: Path) -> None:
    assert parse_env_file(file.read_text()) == dotenv_values(file)


def test_the_environment_wins() -> None:
    in_files = {**dict.fromkeys(names(), "1.0"), **parse_env_file(TEXT)}
    versions = read_versions(in_files, {"KAFKA_VERSION": "9.9", "DEBEZIUM_VERSION": ""})
    assert versions["KAFKA_VERSION"] == "9.9"
    assert versions["DEBEZIUM_VERSION"] == "3.6.1.Final"
    assert tuple(versions) == names()
