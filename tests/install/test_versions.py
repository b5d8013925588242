"""Tests of reading versions from .env without any library."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from racetrack import plugins
from racetrack.install.versions import parse_env_file


@pytest.mark.parametrize("file", [plugins.REPO / ".env", *plugins.env_files()], ids=str)
def test_reads_the_repositorys_own_files_as_dotenv_does(file: Path) -> None:
    assert parse_env_file(file.read_text()) == dotenv_values(file)
