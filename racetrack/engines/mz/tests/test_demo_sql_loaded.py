"""`scripts/demo.sql` as psql runs it, against a Materialize of the tests that does what a real one
was seen to do: the script as it is, and what it must not go back to."""

# ruff: noqa: S608  # queries are made of names that stand here

import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from racetrack.engines.mz.tests.materialize import (
    FakeOutside,
    Materialize,
    running_materialize,
    sink,
)
from racetrack.engines.mz.tests.test_demo_sql import SCRIPT
from racetrack.engines.shared.tests.postgres import Postgres, running_postgres
from racetrack.workloads.shop.load.topics import SINK_TOPIC

SCHEMA = "demo"

# Each was in the script once, and was refused by Materialize 26.9.
QUOTED_ALIAS = {
    "OFFSET AS message_offset": 'OFFSET AS "offset"',
    'message_offset::bigint AS "offset"': '"offset"::bigint AS "offset"',
}
FETCHED_SCHEMAS = """
CREATE SOURCE hvu_test_upserts
FROM KAFKA CONNECTION kafka (TOPIC :'sink_topic')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
INCLUDE KEY AS message_key
ENVELOPE UPSERT;
"""
WAIT = """
SELECT sinks.id AS sink_id
FROM mz_sinks AS sinks
JOIN mz_schemas AS schemas ON schemas.id = sinks.schema_id
JOIN mz_databases AS databases ON databases.id = schemas.database_id
WHERE sinks.name = 'high_value_users_sink'
    AND schemas.name = current_schema()
    AND databases.name = current_database()
\\gset

BEGIN;
DECLARE sink_works CURSOR FOR SUBSCRIBE ({query});
FETCH 1 sink_works WITH (timeout = '60s');
\\echo rows: :ROW_COUNT
COMMIT;
"""
STATUS = (
    "SELECT status FROM mz_internal.mz_sink_statuses WHERE id = :'sink_id' AND status = 'running'"
)
COUNT = """SELECT messages_committed FROM mz_internal.mz_sink_statistics
    WHERE id = :'sink_id' AND messages_committed > 0"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def materialize(postgres: Postgres) -> Iterator[Materialize]:
    with running_materialize(postgres) as server:
        postgres.rows(f"CREATE SCHEMA {SCHEMA}")
        yield server
        postgres.rows(f"DROP SCHEMA {SCHEMA} CASCADE")


def make_sink_topic(materialize: Materialize) -> None:
    """As the load generator does."""
    assert isinstance(materialize.outside, FakeOutside)
    materialize.outside.topics.add(SINK_TOPIC)


def pasted(materialize: Materialize, script: str) -> "subprocess.CompletedProcess[str]":
    """What psql says of a script that is pasted into it."""
    in_schema = ["-c", f"SET search_path = {SCHEMA}", "-f", "-"]
    return subprocess.run(
        ["psql", "-X", "-q", "-b", "-d", materialize.url, *in_schema],
        input=script,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def rows(materialize: Materialize, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(materialize.url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}".encode())
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def before(statement: str) -> str:
    """The script up to there."""
    head, found, _ = SCRIPT.read_text().partition(statement)
    assert found
    return head


def test_the_whole_script_runs_before_the_sink_has_done_anything(materialize: Materialize) -> None:
    make_sink_topic(materialize)
    told = pasted(materialize, SCRIPT.read_text())
    assert (told.returncode, told.stdout) == (0, ""), told.stderr
    assert "ERROR" not in told.stderr
    assert isinstance(materialize.outside, FakeOutside)
    assert materialize.outside.schema(f"{SINK_TOPIC}-value") is None
    source = materialize.statements.sources["hvu_test_upserts"]
    assert (source.key, source.value) == (sink.KEY, sink.VALUE)


def test_what_the_sink_writes_is_read_back_also_after_a_stall(materialize: Materialize) -> None:
    make_sink_topic(materialize)
    assert pasted(materialize, SCRIPT.read_text()).returncode == 0
    purchases = "(1, 1, 2, 9000.01), (2, NULL, 1, 10000.01), (3, 2, 1, 10000.00)"
    columns = "id, user_id, quantity, purchase_price"
    rows(materialize, "INSERT INTO users VALUES (1, 'one@shop')")
    rows(materialize, f"INSERT INTO purchases ({columns}) VALUES {purchases}")
    materialize.stall_sinks(SCHEMA)
    assert rows(materialize, "SELECT * FROM hvu_test") == []
    materialize.run_sinks(SCHEMA)
    written = rows(materialize, "SELECT * FROM high_value_users ORDER BY id")
    assert [row[0] for row in written] == [1, None]
    assert rows(materialize, "SELECT * FROM hvu_test ORDER BY id") == written
    keys = "SELECT message_key IS NOT DISTINCT FROM id FROM hvu_test_upserts"
    assert rows(materialize, keys) == [(True,), (True,)]


def test_without_the_sinks_topic_it_ends_there_and_says_so(materialize: Materialize) -> None:
    told = pasted(materialize, SCRIPT.read_text())
    assert told.returncode == 3
    assert "ERROR:  Topic does not exist" in told.stderr
    assert "STATEMENT:  CREATE SOURCE hvu_test_upserts" in told.stderr


def test_a_reserved_word_as_an_alias_makes_a_name_with_quotes(materialize: Materialize) -> None:
    script = SCRIPT.read_text()
    for now, then in QUOTED_ALIAS.items():
        assert script.count(now) == 1
        script = script.replace(now, then)
    told = pasted(materialize, script)
    assert told.returncode == 3
    assert 'ERROR:  column "offset" does not exist' in told.stderr
    assert "STATEMENT:  CREATE VIEW pageviews AS" in told.stderr


@pytest.mark.parametrize(
    ("query", "says", "is_there", "why"),
    [
        (STATUS, "rows: 1", False, "Topic does not exist"),
        (STATUS, "rows: 1", True, "the schema registry has no schema of the topic"),
        (COUNT, "rows: 0", True, "the schema registry has no schema of the topic"),
    ],
)
def test_neither_a_sinks_status_nor_its_count_says_that_it_has_written(
    materialize: Materialize, query: str, says: str, is_there: bool, why: str
) -> None:
    if is_there:
        make_sink_topic(materialize)
    waiting = WAIT.format(query=query) + FETCHED_SCHEMAS
    told = pasted(materialize, before("CREATE SOURCE hvu_test_upserts") + waiting)
    assert told.returncode == 3 and says in told.stdout
    assert f"ERROR:  {why}" in told.stderr
    assert "STATEMENT:  CREATE SOURCE hvu_test_upserts" in told.stderr


def test_the_count_stays_0_when_the_sink_has_written(materialize: Materialize) -> None:
    assert pasted(materialize, before("CREATE SOURCE hvu_test_upserts")).returncode == 0
    materialize.run_sinks(SCHEMA)
    sinks = "mz_internal.mz_sink_statistics JOIN mz_sinks USING (id)"
    assert rows(materialize, f"SELECT messages_committed FROM {sinks}") == [(0,)]
    fetched = FETCHED_SCHEMAS.replace(":'sink_topic'", f"'{SINK_TOPIC}'")
    assert pasted(materialize, fetched).returncode == 0
