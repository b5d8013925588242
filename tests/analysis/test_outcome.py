"""The outcome is `ok` only if the run's figures can be trusted; else it says why not."""

from typing import Any

import pytest

from racetrack.analysis import outcome
from tests.records import NOISE_FIGURES, record, verified

GATE = {
    "noise_gate": True,
    "foreign_cpu_max_pct": 5.0,
    "steal_max_pct": 1.0,
    "core_speed_min_pct": 0.0,
}


def test_a_good_run_is_ok() -> None:
    assert outcome.run_outcome(record()) == "ok"


def test_an_engine_that_is_behind_is_no_failure_of_the_run() -> None:
    assert outcome.run_outcome(record({"results": {"processed_pageviews": 12}})) == "ok"


def test_an_engine_that_told_nothing_in_the_window_but_did_later_is_no_failure() -> None:
    silent = {"updates": 0, "next_update_s": 17.5}
    assert outcome.run_outcome(record({"results": {"dt_ms": silent, "verdict": silent}})) == "ok"


def test_an_engine_that_is_offered_nothing_has_nothing_to_report() -> None:
    silent = {"updates": 0, "next_update_s": None}
    idle = {"dt_ms": silent, "verdict": silent, "achieved_pageviews_per_s": 0.0}
    assert outcome.run_outcome(record({"asked": {"pageviews_per_s": 0}, "results": idle})) == "ok"


@pytest.mark.parametrize(
    ("where", "key", "value", "says"),
    [
        ("measured", "end_offsets", [10, 19], "partition 1: handed over 20, published 19"),
        ("measured", "end_offsets", [10, 21], "partition 1"),
        ("measured", "refused", [0, 7], "could not publish 7"),
        ("results", "achieved_pageviews_per_s", 4900.0, "achieved 4,900.0"),
        ("results", "achieved_pageviews_per_s", None, "too short"),
        ("results", "dt_ms", {"updates": 0, "next_update_s": None}, "no update"),
        ("results", "verdict", {"updates": 0, "next_update_s": None}, "can no longer be read"),
        ("results", "processed_pageviews", 31, "counted 1 of 30 pageviews twice"),
    ],
)
def test_each_reason_is_said(where: str, key: str, value: object, says: str) -> None:
    assert says in outcome.run_outcome(record({where: {key: value}}))


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ({"foreign_cpu_pct": 5.1}, "other programs used 5.1 % of a core (more than 5 %)"),
        ({"steal_pct": 1.2}, "the hypervisor took 1.2 % of the CPU time (more than 1 %)"),
    ],
)
def test_a_run_that_others_disturbed_is_void_with_an_exit_code_of_its_own(
    figures: dict[str, float], says: str
) -> None:
    noise = {"noise": {**NOISE_FIGURES, **figures}}
    found = outcome.run_outcome(record({"results": noise, "settings": GATE}))
    assert found == f"Void: in the measured window {says}."
    codes = [outcome.exit_code(of) for of in ("ok", found, "The generator achieved 3/s")]
    assert codes == [0, 5, 1]
    off = {**GATE, "noise_gate": False}
    assert outcome.run_outcome(record({"results": noise, "settings": off})) == "ok"


def test_a_rate_that_was_missed_because_of_others_is_void_and_a_wrong_view_is_wrong() -> None:
    results = {
        "noise": {**NOISE_FIGURES, "foreign_cpu_pct": 50.0},
        "achieved_pageviews_per_s": 4900.0,
    }
    told: dict[str, Any] = {"results": results, "settings": GATE}
    assert outcome.run_outcome(record(told)).startswith("Void: ")
    found = verified(items=WRONG) | {"drained_after_s": 1.0}
    assert outcome.run_outcome(record({**told, "verified": found})) == "Views are wrong: items"


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
    assert outcome.run_outcome(record({"verified": found})).startswith(says)
