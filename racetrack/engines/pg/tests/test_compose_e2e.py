"""End-to-end tests of PostgreSQL in containers: verification after updates and deletions, and after
both of its services were killed."""

import pytest

from racetrack.config import Settings
from tests.e2e.contained import check_every_view

pytestmark = pytest.mark.e2e


def test_every_view_is_right(contained: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    check_every_view("pg", monkeypatch, fault="kill:engine@4s")
