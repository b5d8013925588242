"""Tests of a PostgreSQL that the user provides: the demo has its own schema, which is removed."""

import re
from typing import Any, cast

import psycopg
import pytest

from racetrack.config import load
from racetrack.engines.pg import engine as pg
from racetrack.engines.pg.elsewhere import ELSEWHERE
from racetrack.engines.pg.tests.brought import Loaded, pageview
from racetrack.engines.shared.tests import fakes
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres
from racetrack.errors import SetupError, UsageError
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.provided import SERVICES

pytestmark = pytest.mark.slow


def url(server: Postgres, user: str = "shop") -> str:
    return f"postgres://{user}:{PASSWORD}@127.0.0.1:{server.port}/shop"


@pytest.fixture
def elsewhere(server: Postgres, stack: Stack) -> Stack:
    """Return a stack whose PostgreSQL runs elsewhere. The fixture `stack` creates the database."""
    return fakes.stack(POSTGRES_URL=url(server))


def schemas(server: Postgres) -> set[str]:
    with psycopg.connect(url(server), autocommit=True) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    return {name for (name,) in found}


def test_the_demo_is_in_a_schema_of_its_own_and_leaves_nothing(
    server: Postgres, elsewhere: Stack
) -> None:
    before = schemas(server)
    pg.ENGINE.load_demo(elsewhere)
    assert schemas(server) - before == {RUN_NAME}
    options = f"-csearch_path={RUN_NAME}"
    with psycopg.connect(url(server), autocommit=True, options=options) as connection:
        loaded = Loaded(elsewhere, cast("psycopg.Connection[Any]", connection))
        loaded.bring(pageview(0, "/products/3"))
    (row,) = loaded.rows("pageviews_by_item")
    assert row["pageviews"] == 1
    (remark,) = pg.ENGINE.remarks(elsewhere)
    assert RUN_NAME in remark and PASSWORD not in remark
    (line,) = ELSEWHERE.remove(elsewhere.settings, RUN_NAME)
    assert line.startswith(f"removed the schema {RUN_NAME} from 127.0.0.1:")
    assert schemas(server) == before
    assert ELSEWHERE.remove(elsewhere.settings, RUN_NAME) == ()


def test_what_a_killed_run_left_is_removed_by_its_name_only(
    server: Postgres, elsewhere: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = "racetrack_20260101_000000_1"
    pg.ENGINE.load_demo(elsewhere)
    with psycopg.connect(url(server), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {others}".encode())
    services = ["postgres", "pgfeed"]
    line, variables = fakes.removed_of_killed_run(elsewhere.settings, services, monkeypatch)
    assert variables[SERVICES] == '["postgres"]' and PASSWORD not in line
    assert RUN_NAME not in schemas(server) and others in schemas(server)


def test_what_is_locked_is_listed(server: Postgres, elsewhere: Stack) -> None:
    pg.ENGINE.load_demo(elsewhere)
    with psycopg.connect(url(server)) as busy:
        busy.execute(f"LOCK TABLE {RUN_NAME}.feed_positions".encode())
        (line,) = ELSEWHERE.remove(elsewhere.settings, RUN_NAME)
    assert "lock timeout" in line and f"DROP SCHEMA {RUN_NAME} CASCADE;" in line
    assert len(ELSEWHERE.remove(elsewhere.settings, RUN_NAME)) == 1


# ---- The check ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "wrong", "answer"),
    [
        (PASSWORD, "wrong", "password authentication failed"),
        ("/shop$", "/shop?sslmode=require", "server does not support SSL"),
    ],
)
def test_a_wrong_url_is_refused_with_the_servers_answer(
    server: Postgres, stack: Stack, part: str, wrong: str, answer: str
) -> None:
    with pytest.raises(SetupError) as refused:
        ELSEWHERE.check(load({"POSTGRES_URL": re.sub(part, wrong, url(server))}))
    (why,) = str(refused.value).splitlines()[1:]
    assert "POSTGRES_URL: can't log in: " in why and answer in why
    assert PASSWORD not in str(refused.value)
    with pytest.raises(UsageError, match="POSTGRES_URL") as unusable:
        load({"POSTGRES_URL": "mysql://me:secret@host/db"})
    assert "secret" not in str(unusable.value)
