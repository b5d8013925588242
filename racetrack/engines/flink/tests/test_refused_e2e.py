"""Tests that Flink's run ends at a message that it can't read, and one line names that message."""

import re
from collections.abc import Callable

import pytest

from tests.e2e.shared import refusal_of

pytestmark = pytest.mark.e2e


def test_a_message_that_is_no_pageview_ends_the_run_and_is_named(
    nothing_left: Callable[[], None],
) -> None:
    outcome = refusal_of("flink", b"hello")
    place = r"Flink can't take pageviews/2 at offset \d+"
    assert re.fullmatch(rf"{place}: not JSON: 'hello' \(.+\)", outcome), outcome
    nothing_left()
