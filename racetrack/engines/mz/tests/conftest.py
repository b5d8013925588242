"""Fixtures: a real PostgreSQL in place of Materialize, and the URL of the tests' Materialize."""

from collections.abc import Iterator

import pytest

from racetrack.engines.mz.tests.materialize import running_materialize
from racetrack.engines.shared.tests.postgres import Postgres, running_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def materialize(postgres: Postgres) -> Iterator[str]:
    with running_materialize(postgres) as url:
        yield url
