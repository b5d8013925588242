"""Tests that one line names a message that Deephaven can't read, and that the run ends."""

import re
from collections.abc import Callable

import pytest

from tests.e2e.shared import refusal_of

pytestmark = pytest.mark.e2e


def test_a_message_that_is_no_pageview_ends_the_run_and_is_named(
    nothing_left: Callable[[], None],
) -> None:
    outcome = refusal_of("dh", None)
    place = r"Deephaven can't take pageviews/2 at offset \d+"
    assert re.fullmatch(rf"{place}: no value \(a tombstone\) \(.+\)", outcome), outcome
    nothing_left()
