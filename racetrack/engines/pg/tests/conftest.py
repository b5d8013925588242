"""Fixtures: a real PostgreSQL, set up as for the baseline engine."""

from collections.abc import Iterator

import pytest

from racetrack.engines.pg.tests.brought import Loaded, demo
from racetrack.engines.shared.tests import fakes
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres, for_the_shop
from racetrack.stack.contract import Stack


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with for_the_shop() as found:
        yield found


@pytest.fixture
def stack(server: Postgres) -> Iterator[Stack]:
    server.rows("CREATE DATABASE shop OWNER shop")
    changed = {"POSTGRES_PORT": str(server.port), "POSTGRES_PASSWORD": PASSWORD}
    yield fakes.stack(**changed)
    server.rows("DROP DATABASE shop WITH (FORCE)")


@pytest.fixture
def loaded(stack: Stack) -> Iterator[Loaded]:
    with demo(stack) as found:
        yield found
