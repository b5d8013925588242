"""Tests that one line names a message that Pathway can't read, and that the run ends."""

import re
from collections.abc import Callable

import pytest

from tests.e2e.shared import refusal_of

pytestmark = pytest.mark.e2e


def test_a_message_that_is_no_pageview_ends_the_run_and_is_named(
    nothing_left: Callable[[], None],
) -> None:
    """Check with a text. A message without a value is skipped: Pathway does not report it."""
    outcome = refusal_of("pathway", b"hello")
    place = r"Pathway can't take pageviews/2 at offset \d+"
    assert re.fullmatch(rf"{place}: not JSON: 'hello' \(.+\)", outcome), outcome
    nothing_left()
