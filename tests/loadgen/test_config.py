"""Tests of the load generator's settings: one clear line for each unusable value."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen import config

NEEDED = {"MYSQL_PASSWORD": "secret"}
REPO = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMMAND_ENDPOINT", "host:99999"),
        ("EVENTS_PER_SECOND_START", "-1"),
        ("WORKLOAD", "nothing"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(name: str, value: str) -> None:
    with pytest.raises(config.ConfigError) as caught:
        config.load({**NEEDED, name: value})
    assert str(caught.value).startswith(f"{name}=") and "\n" not in str(caught.value)


def test_a_program_without_its_password_ends_with_2_and_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "loadgen"],
        cwd=REPO,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "MYSQL_PASSWORD is not set" in ended.stderr
