"""Fixtures: a real PostgreSQL in place of Materialize."""

from collections.abc import Iterator

import pytest

from racetrack.engines.shared.tests.postgres import Postgres, running_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server
