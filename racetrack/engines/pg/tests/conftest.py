"""Fixtures: a real PostgreSQL, set up as for the baseline engine."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from racetrack.engines.pg import engine as pg
from racetrack.engines.pg.services import postgres
from racetrack.engines.shared.tests import fakes
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres, running_postgres
from racetrack.stack.contract import Stack


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as found:
        found.rows(f"CREATE ROLE shop SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        yield found


@pytest.fixture
def stack(server: Postgres) -> Iterator[Stack]:
    server.rows("CREATE DATABASE shop OWNER shop")
    changed = {"POSTGRES_PORT": str(server.port), "POSTGRES_PASSWORD": PASSWORD}
    yield fakes.stack(**changed)
    server.rows("DROP DATABASE shop WITH (FORCE)")


@pytest.fixture
def loaded(stack: Stack) -> Iterator["psycopg.Connection[Any]"]:
    """Create the demo's tables and views; yield a connection such as the consumer of Kafka uses to
    fill them."""
    pg.ENGINE.load_demo(stack)
    with postgres.connect(stack.settings) as connection:
        yield connection
