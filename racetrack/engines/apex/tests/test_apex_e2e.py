"""Apex on the real stack: every view right; what a kill does to its counts; what it listens on."""

from collections.abc import Callable

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests import programs_e2e

pytestmark = pytest.mark.e2e

# As far as its settings go from how it is delivered, which all engines are tested with
# (tests/e2e/test_workloads.py).
OTHERWISE = {
    "APEX_GUARANTEE": "at_most_once",
    "APEX_LOCALITY": "thread_local",
    "APEX_FLUSH_MS": "100",
    "ADS_WITH_SKEW": "true",
}


def test_every_view_is_right_when_it_is_set_otherwise() -> None:
    programs_e2e.check_right(programs_e2e.verified("apex", OTHERWISE))


def test_after_a_kill_nothing_is_lost(nothing_left: Callable[[], None]) -> None:
    counted, published = programs_e2e.counted_after_a_kill("apex")
    assert counted > published
    nothing_left()


def test_after_a_kill_nothing_is_counted_twice() -> None:
    at_most_once = {"APEX_GUARANTEE": "at_most_once"}
    counted, published = programs_e2e.counted_after_a_kill("apex", **at_most_once)
    assert 0 < counted < published


def test_it_listens_on_this_machine_alone(settings: Settings) -> None:
    """One port: that of the buffer server within it."""
    with programs_e2e.up("apex"):
        assert programs_e2e.listening("apex", settings) == ["127.0.0.1"]
