"""Tests of the load generator's settings: defaults, and one clear line for each unusable value."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen import config

NEEDED = {"MYSQL_PASSWORD": "secret"}
REPO = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMMAND_ENDPOINT", "8090"),
        ("COMMAND_ENDPOINT", "host:99999"),
        ("EVENTS_PER_SECOND_START", "-1"),
        ("EVENTS_PARTITIONS", "0"),
        ("LOADGEN_LINGER_MS", "nan"),
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


@given(st.integers(0, config.MAX_RATE_PER_S * 1000))
def test_rates_survive_being_shown(milli: int) -> None:
    assert config.parse_rate_milli(config.show_rate(milli)) == milli


@pytest.mark.slow
@given(st.text())
def test_any_text_is_a_rate_or_none(text: str) -> None:
    milli = config.parse_rate_milli(text)
    assert milli is None or 0 <= milli <= config.MAX_RATE_PER_S * 1000


@pytest.mark.parametrize(
    ("pod", "replicas", "hosts", "is_host"),
    [
        ("", "3", (), False),
        ("loadgen-0", "1", (), False),
        ("loadgen-0", "3", ("loadgen-1:8090", "loadgen-2:8090"), False),
        ("loadgen-2", "3", ("loadgen-1:8090", "loadgen-2:8090"), True),
    ],
)
def test_the_first_pod_has_workers_in_all_others(
    pod: str, replicas: str, hosts: tuple[str, ...], is_host: bool
) -> None:
    loaded = config.load({**NEEDED, "RACETRACK_INSTANCE": pod, "LOADGEN_REPLICAS": replicas})
    assert loaded.worker_hosts == hosts
    assert loaded.is_worker_host == is_host
