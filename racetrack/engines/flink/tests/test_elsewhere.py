"""Tests of runs with a Flink that the user provides, as far as they need no running Flink."""

import pytest

from racetrack.config import load
from racetrack.engines import find_engine
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.engine import statements_for
from racetrack.engines.shared.tests.fakes import stack
from racetrack.errors import SetupError, UsageError
from racetrack.stack.applicability import require_applicable
from racetrack.stack.elsewhere import RUN_NAME

FLINK = find_engine("flink")
CLOSED = {"FLINK_GATEWAY_URL": "http://127.0.0.1:1"}


def test_the_job_gets_the_name_of_the_run_only_elsewhere() -> None:
    named = f"SET 'pipeline.name' = '{RUN_NAME}'"
    for own, is_named in ((stack(), False), (stack(**CLOSED), True)):
        statements = statements_for(own, FLINK.script(own.settings))
        assert (named in statements) is is_named
        assert (f"{named};" in FLINK.usage_hints(own)) is is_named


def test_jobs_that_can_not_be_cancelled_are_listed() -> None:
    (line,) = ELSEWHERE.remove(load(CLOSED), "racetrack_20260101_000000_1")
    assert "racetrack_20260101_000000_1" in line and "Connection refused" in line
    with pytest.raises(SetupError, match="can't open a session: "):
        ELSEWHERE.check(load(CLOSED))
    assert ELSEWHERE.remove(load(CLOSED), "") == ()


def test_containers_have_a_flink_of_their_own() -> None:
    with pytest.raises(UsageError, match="a stack in containers starts its own Flink"):
        require_applicable("FLINK_GATEWAY_URL", "compose", airgap=False)
