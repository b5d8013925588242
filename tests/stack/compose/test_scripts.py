"""Tests of the scripts in images: they register the connector and report health."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from racetrack.config import REPO

RUNNING = '{"name":"shop","connector":{"state":"RUNNING"},"tasks":[{"id":0,"state":"RUNNING"}]}'
SUBJECTS = '["mysql.shop.users-value","mysql.shop.items-value","mysql.shop.purchases-value"]'
# A fake `curl`: it prints the file that the last part of the URL names, and fails without that
# file, as for HTTP 404.
CURL = """#!/bin/sh
for last; do :; done
echo "$@" >> "$ANSWERS/requests"
name=${last##*/}
[ -e "$ANSWERS/$name.once" ] && { cat "$ANSWERS/$name.once"; rm "$ANSWERS/$name.once"; exit 22; }
cat "$ANSWERS/$name" 2>/dev/null || exit 22
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Return a folder with a fake `curl`, and the answers of Kafka Connect and the schema registry
    that it gives, one file each."""
    (tmp_path / "curl").write_text(CURL)
    (tmp_path / "curl").chmod(0o755)
    for name, text in {"status": RUNNING, "subjects": SUBJECTS, "connectors": "[]"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def run(answers: Path) -> Run:
    def script(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", *(str(REPO / part) if "/" in part else part for part in command)],
            env={
                "PATH": f"{answers}:/usr/bin:/bin",
                "ANSWERS": str(answers),
                "SCHEMA_REGISTRY_URL": "http://redpanda:8081",
                "WORKLOAD": "shop",
                "TABLES": "shop.users,shop.items,shop.purchases",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )

    return script


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        ("status", RUNNING, ""),
        ("status", None, "not registered yet"),
        ("status", RUNNING.replace('0,"state":"RUNNING"', '0,"state":"FAILED"'), "FAILED"),
        ("subjects", SUBJECTS.replace("items", "other"), "schema of shop.items is not registered"),
    ],
    ids=["healthy", "not registered", "failed", "a schema is missing"],
)
def test_debezium_is_healthy_when_the_changes_of_all_tables_flow(
    run: Run, answers: Path, name: str, answer: str | None, why: str
) -> None:
    (answers / name).unlink()
    if answer is not None:
        (answers / name).write_text(answer)
    done = run("debezium/healthy.sh")
    assert done.returncode == (1 if why else 0)
    assert why in done.stdout


@pytest.mark.slow
def test_the_connector_is_registered_as_soon_as_connect_takes_it(run: Run, answers: Path) -> None:
    (answers / "connectors.once").write_text("")  # Connect is not up yet
    (answers / "config.once").write_text('{"error_code":500,"message":"no MySQL yet"}')
    (answers / "config").write_text("{}")
    done = run("debezium/register.sh")
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert "no MySQL yet" in first
    assert last == "register.sh: the connector is registered"
    put = (answers / "requests").read_text().splitlines()[-1]
    assert put.endswith("http://localhost:8083/connectors/shop/config")
    file = put.partition("--data @")[2].split()[0]
    assert json.loads(Path(file).read_text())["topic.prefix"] == "mysql"
