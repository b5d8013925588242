"""Tests that one line names a message that an engine can't read, and that the run ends."""

import re
from collections.abc import Callable

import pytest

from racetrack.engines import find_engine
from tests.e2e.shared import refusal_of

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("engine", "value", "reason"),
    [
        ("dh", None, r"no value \(a tombstone\)"),
        ("flink", b"hello", "not JSON: 'hello'"),
        # A message without a value is skipped: Pathway does not report it.
        ("pathway", b"hello", "not JSON: 'hello'"),
    ],
)
def test_a_message_that_is_no_pageview_ends_the_run_and_is_named(
    engine: str, value: bytes | None, reason: str, nothing_left: Callable[[], None]
) -> None:
    outcome = refusal_of(engine, value)
    place = rf"{find_engine(engine).title} can't take pageviews/2 at offset \d+"
    assert re.fullmatch(rf"{place}: {reason} \(.+\)", outcome), outcome
    nothing_left()
