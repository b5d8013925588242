"""Tests that psql runs `scripts/demo.sql`, with the tests' Materialize."""

import subprocess
from collections.abc import Iterator

import pytest

from racetrack.engines.mz.tests.materialize import Materialize, fake_outside, running_materialize
from racetrack.engines.mz.tests.test_demo_sql import SCRIPT
from racetrack.engines.shared.tests.postgres import Postgres
from racetrack.workloads.shop.load.topics import SINK_TOPIC

pytestmark = pytest.mark.slow

SCHEMA = "demo"
# Schemas that a real Materialize registers for the sink of the view `high_value_users`.
KEY = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": ["null", "long"]}],
}
VALUE = {
    "type": "record",
    "name": "envelope",
    "fields": [
        {"name": "id", "type": ["null", "long"]},
        {"name": "email", "type": ["null", "string"]},
        {
            "name": "lifetime_value",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2},
        },
        {"name": "purchases", "type": "long"},
    ],
}


@pytest.fixture
def schema(postgres: Postgres) -> Iterator[str]:
    postgres.rows(f"CREATE SCHEMA {SCHEMA}")
    yield SCHEMA
    postgres.rows(f"DROP SCHEMA {SCHEMA} CASCADE")


def pasted(materialize: Materialize, schema: str) -> "subprocess.CompletedProcess[str]":
    """Paste the script into psql; return how psql ended."""
    in_schema = ["-c", f"SET search_path = {schema}", "-f", "-"]
    return subprocess.run(
        ["psql", "-X", "-q", "-b", "-d", materialize.url, *in_schema],
        input=SCRIPT.read_text(),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_whole_script_runs_before_the_sink_has_written_anything(
    postgres: Postgres, schema: str
) -> None:
    """The registry has no schemas of the sink's topic yet, so the script gives the source of that
    topic the schemas that the sink will register."""
    with running_materialize(postgres, fake_outside(SINK_TOPIC)) as materialize:
        done = pasted(materialize, schema)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "ERROR" not in done.stderr
    assert materialize.statements.seeds == {"hvu_test_upserts": (KEY, VALUE)}


def test_without_the_sinks_topic_it_ends_there_and_is_reported(
    postgres: Postgres, schema: str
) -> None:
    with running_materialize(postgres) as materialize:
        done = pasted(materialize, schema)
    assert done.returncode == 3
    assert "ERROR:  Topic does not exist" in done.stderr
    assert "STATEMENT:  CREATE SOURCE hvu_test_upserts" in done.stderr
