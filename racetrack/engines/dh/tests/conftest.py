"""Fixtures: a Deephaven that the user provides."""

from collections.abc import Iterator

import pytest

from racetrack.engines.dh.tests.brought import Brought, brought


@pytest.fixture(scope="session")
def server() -> Iterator[Brought]:
    with brought() as found:
        yield found
