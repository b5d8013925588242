"""The outcome is `ok` only if the run's figures can be trusted; else it says why not."""

from typing import Any

import pytest

from racetrack.analysis import outcome
from tests.records import record, verified


def test_a_good_run_is_ok() -> None:
    assert outcome.of(record()) == "ok"


def test_an_engine_that_is_behind_is_no_failure_of_the_run() -> None:
    assert outcome.of(record({"results": {"processed_pageviews": 12}})) == "ok"


def test_an_engine_that_told_nothing_in_the_window_but_did_later_is_no_failure() -> None:
    silent = {"updates": 0, "next_update_s": 17.5}
    assert outcome.of(record({"results": {"dt_ms": silent, "verdict": silent}})) == "ok"


@pytest.mark.parametrize(
    ("where", "key", "value", "says"),
    [
        ("measured", "end_offsets", [10, 19], "partition 1: handed over 20, published 19"),
        ("measured", "end_offsets", [10, 21], "partition 1"),
        ("measured", "refused", [0, 7], "could not publish 7"),
        ("results", "achieved_pageviews_per_s", 4900.0, "achieved 4,900.0"),
        ("results", "achieved_pageviews_per_s", None, "too short"),
        ("results", "dt_ms", {"updates": 0, "next_update_s": None}, "no update"),
        ("results", "verdict", {"updates": 0, "next_update_s": None}, "can't be read any more"),
        ("results", "processed_pageviews", 31, "counted 31"),
    ],
)
def test_each_reason_is_said(where: str, key: str, value: object, says: str) -> None:
    assert says in outcome.of(record({where: {key: value}}))


RIGHT, WRONG, ABSENT = {"status": "right"}, {"status": "wrong"}, {"status": "absent"}


@pytest.mark.parametrize(
    ("views", "drained_after_s", "says"),
    [
        ({"users": RIGHT, "hvu_test": ABSENT}, 1.0, "ok"),
        ({"users": RIGHT, "items": WRONG}, 1.0, "Views are wrong: items"),
        ({"items": WRONG}, None, "Views are wrong: items, and the engine had not drained"),
        ({"users": {"status": "unreadable"}}, 0.0, "Views are wrong: users"),
        ({"users": ABSENT}, 0.0, "No view could be verified"),
    ],
)
def test_a_wrong_view_is_named(
    views: dict[str, Any], drained_after_s: float | None, says: str
) -> None:
    found = verified(**views) | {"drained_after_s": drained_after_s}
    assert outcome.of(record({"verified": found})).startswith(says)
