"""Tests of the views in `scripts/ads.sql`, which must contain the same rows as those of `ads.py`.
The view definitions run on a real PostgreSQL, with small tables in place of the sources."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from racetrack.config import REPO
from racetrack.engines.mz.tests.test_demo_sql import created, rows
from racetrack.engines.shared.tests.postgres import Postgres
from racetrack.workloads.ads.tests.test_views import ADS, CAMPAIGNS, events, views_of
from racetrack.workloads.contract import View, find_workload

SCRIPT = REPO / "scripts" / "ads.sql"
SOURCES = """
CREATE TABLE ad_events_json (data jsonb, partition int);
CREATE TABLE campaigns (campaign_id text);
CREATE TABLE ads (ad_id text, campaign_id text);
"""
VIEWS = find_workload("ads").views


@pytest.fixture(scope="module")
def db(postgres: Postgres) -> Iterator["psycopg.Connection[Any]"]:
    """Create the script's views on the tables above."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(SOURCES.encode())
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO campaigns VALUES (%s)", [(name,) for name in CAMPAIGNS])
        cursor.executemany("INSERT INTO ads VALUES (%s, %s)", list(ADS.items()))
        cursor.executemany(
            "INSERT INTO ad_events_json VALUES (%s, %s)",
            [(json.dumps(event), event["partition"]) for event in events()],
        )
        for statement in created("MATERIALIZED VIEW|VIEW", SCRIPT).values():
            connection.execute(statement.replace("CREATE MATERIALIZED", "CREATE", 1).encode())
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_holds_the_rows_of_the_demo(db: "psycopg.Connection[Any]", view: View) -> None:
    columns = ", ".join(view.columns)
    found = rows(db, f"SELECT {columns} FROM {view.name}")  # noqa: S608  # names of the workload
    expected = views_of(events())[view.name]
    assert Counter(found) == Counter(tuple(row[of] for of in view.columns) for row in expected)


@pytest.mark.slow
def test_the_summary_has_no_row_before_the_first_event(db: "psycopg.Connection[Any]") -> None:
    with db.transaction(force_rollback=True):
        db.execute("TRUNCATE ad_events_json")
        assert rows(db, "SELECT * FROM ad_events_summary") == []
