"""Tests that one line names a message that Pathway can't read, and that the run ends."""

import re
from collections.abc import Callable

import pytest

from tests.e2e.shared import refusal_of

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("value", [b"hello", None])
def test_a_message_that_is_no_pageview_ends_the_run_and_is_named(
    value: bytes | None, nothing_left: Callable[[], None]
) -> None:
    outcome = refusal_of("pathway", value)
    assert re.match(r"Pathway can't take pageviews/2 at offset \d+: ", outcome), outcome
    nothing_left()
