"""`scripts/ads.sql`: what Materialize parses, and views that hold what `ads.py` says, on a real
PostgreSQL: the views' own text over small tables in the place of the sources."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlglot import exp

from racetrack.config import REPO
from racetrack.engines.mz.tests.test_demo_sql import created, known_kind, rows, statements
from racetrack.engines.shared.tests.postgres import Postgres, running_postgres
from racetrack.workloads.contract import find_workload

SCRIPT = REPO / "scripts" / "ads.sql"
WINDOW_MS = 10_000
FIRST = 1_774_155_900_000
SOURCES = """
CREATE TABLE ad_events_json (data jsonb, partition int);
CREATE TABLE campaigns (campaign_id text);
CREATE TABLE ads (ad_id text, campaign_id text);
INSERT INTO ads VALUES ('a', 'c'), ('b', 'c'), ('x', 'd');
"""
# Partition, ad, type, time. The last ad is in no table.
EVENTS = [
    (0, "a", "view", FIRST),
    (0, "b", "view", FIRST + WINDOW_MS - 1),
    (0, "a", "click", FIRST),
    (1, "a", "view", FIRST + WINDOW_MS),
    (1, "x", "purchase", FIRST),
    (2, "nobody's", "view", FIRST + 5),
]


def test_every_statement_is_one_that_materialize_accepts() -> None:
    kinds = {known_kind(statement) for statement in statements(SCRIPT)}
    assert kinds == {"CREATE CONNECTION", "CREATE SOURCE", exp.Create}


def test_no_source_brings_a_progress_that_is_in_the_way_of_a_view() -> None:
    views, sources = created("MATERIALIZED VIEW|VIEW", SCRIPT), created("SOURCE", SCRIPT)
    assert not {f"{source}_progress" for source in sources} & {*views, *sources}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def db(postgres: Postgres) -> Iterator["psycopg.Connection[Any]"]:
    """The script's views over the tables above."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(SOURCES.encode())
        connection.cursor().executemany(
            "INSERT INTO ad_events_json VALUES (jsonb_build_object('ad_id', %s::text,"
            " 'event_type', %s::text, 'event_time', %s::bigint), %s)",
            [(ad, kind, at, partition) for partition, ad, kind, at in EVENTS],
        )
        for statement in created("MATERIALIZED VIEW|VIEW", SCRIPT).values():
            connection.execute(statement.replace("CREATE MATERIALIZED", "CREATE", 1).encode())
        yield connection


def test_every_verified_view_is_there_with_its_columns(db: "psycopg.Connection[Any]") -> None:
    from_topics = set(find_workload("ads").tables)
    assert from_topics <= created("SOURCE", SCRIPT).keys()
    for view in find_workload("ads").views:
        columns = ", ".join(view.columns)
        rows(db, f"SELECT {columns} FROM {view.name}")  # noqa: S608  # names of the workload


def test_views_are_counted_by_campaign_and_window(db: "psycopg.Connection[Any]") -> None:
    assert rows(db, "SELECT * FROM campaign_windows ORDER BY window_start_ms") == [
        ("c", FIRST, 2),
        ("c", FIRST + WINDOW_MS, 1),
    ]


def test_progress_is_per_partition_and_its_summary_one_row(db: "psycopg.Connection[Any]") -> None:
    assert rows(db, "SELECT * FROM ad_events_progress ORDER BY partition") == [
        (0, 3, FIRST + WINDOW_MS - 1),
        (1, 2, FIRST + WINDOW_MS),
        (2, 1, FIRST + 5),
    ]
    assert rows(db, "SELECT * FROM ad_events_summary") == [(6, FIRST + WINDOW_MS)]
    with db.transaction(force_rollback=True):
        db.execute("TRUNCATE ad_events_json")
        assert rows(db, "SELECT * FROM ad_events_summary") == []
