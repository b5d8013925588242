"""Tests that the outcome is `ok` only if the figures can be trusted, and that a check by Little's
law finds wrong records."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from racetrack.analysis import lag, noise, outcome, raw
from racetrack.analysis.curves import Curve, Curves
from racetrack.results.figures import LittlesLaw
from racetrack.results.run import is_throttled
from simulations import synthetic
from simulations.synthetic import SyntheticRun, changed
from tests.records import GATE, NOISE_FIGURES, record, verified

LATER, NEVER = ({"updates": 0, "next_update_s": at_s} for at_s in (17.5, None))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"results": {"processed_events": 12}},
        {"results": {"dt_ms": LATER, "verdict": LATER}},
        {
            "arguments": {"events_per_s": 0},
            "results": {"dt_ms": NEVER, "verdict": NEVER, "achieved_events_per_s": 0.0},
        },
    ],
    ids=["all is well", "the engine is behind", "its first update comes later", "rate 0"],
)
def test_a_run_whose_figures_can_be_trusted_is_ok(changes: dict[str, Any]) -> None:
    assert outcome.run_outcome(record(changes)) == "ok"


@pytest.mark.parametrize(
    ("offered", "expected"), [(5_003.0, "ok"), (5_100.0, "of the 5,100 requested")]
)
def test_of_a_changing_load_what_was_due_in_the_window_is_to_be_achieved(
    offered: float, expected: str
) -> None:
    arguments = {"events_per_s": 90_000, "load": "spike 5k 900k 1s"}
    results = {"offered_events_per_s": offered, "achieved_events_per_s": 5_000.0}
    assert expected in outcome.run_outcome(record({"arguments": arguments, "results": results}))


DELETED = {"deleted_unread_events": 7}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"measured": {"end_offsets": [10, 19]}},
            "partition 1: handed over 20, published 19",
        ),
        ({"measured": {"end_offsets": [10, 21]}}, "partition 1"),
        ({"measured": {"refused": [0, 7]}}, "could not publish 7"),
        ({"results": {"achieved_events_per_s": 4900.0}}, "achieved 4,900.0"),
        ({"results": {"achieved_events_per_s": None}}, "too short"),
        ({"results": {"dt_ms": NEVER}}, "no update"),
        ({"results": {"verdict": NEVER}}, "can no longer be read"),
        ({"results": {"processed_events": 31}}, "counted 1 of 30 events twice"),
        ({"results": DELETED}, "deleted 7 events"),
        # The setting that limits what the broker keeps is named.
        (
            {"results": DELETED, "settings": {"kafka_retention_bytes": 1_048_576}},
            "KAFKA_RETENTION_BYTES=1048576",
        ),
        ({"results": DELETED, "settings": {"kafka_retention_bytes": -1}}, "retention.ms"),
        (
            {
                "results": DELETED,
                "settings": {"kafka_retention_bytes": 9, "kafka_bootstrap_servers": "there:9092"},
            },
            "retention.ms or retention.bytes",
        ),
    ],
)
def test_each_reason_is_in_the_outcome(changes: dict[str, Any], expected: str) -> None:
    assert expected in outcome.run_outcome(record(changes))


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"foreign_cpu_pct": 5.1}, "other programs used 5.1 % of a core (more than 5 %)"),
        ({"steal_pct": 1.2}, "the hypervisor took 1.2 % of the CPU time (more than 1 %)"),
        ({"foreign_cpu_pct": 5.0, "steal_pct": 1.0}, None),
        ({"foreign_cpu_pct": None}, None),
    ],
)
def test_a_run_that_others_disturbed_is_void_with_an_exit_code_of_its_own(
    figures: dict[str, float | None], expected: str | None
) -> None:
    noise = {"noise": {**NOISE_FIGURES, **figures}}
    found = outcome.run_outcome(record({"results": noise, "settings": GATE}))
    assert found == (f"Void: in the measured window {expected}." if expected else "ok")
    assert outcome.exit_code(found) == (5 if expected else 0)
    off = {**GATE, "noise_gate": False}
    assert outcome.run_outcome(record({"results": noise, "settings": off})) == "ok"


QUOTA = {"cores": 0.7, "group": "/sys/fs/cgroup/cpu/small", "services": ["broker", "steadyd"]}


@pytest.mark.parametrize("throttled_pct", [None, 0.0, 0.9, 64.3])
@pytest.mark.parametrize("quotas", [[], [QUOTA]])
def test_a_run_that_a_cpu_quota_stopped_is_void_and_the_quota_is_named(
    throttled_pct: float | None, quotas: list[dict[str, object]]
) -> None:
    run = {
        "results": {"noise": {**NOISE_FIGURES, "throttled_pct": throttled_pct}},
        "machine": {"cores": 2, "cpu_quotas": quotas},
    }
    stopped = record({**run, "settings": GATE})
    found = outcome.run_outcome(stopped)
    is_void = throttled_pct == 64.3
    assert outcome.exit_code(found) == (5 if is_void else 0)
    # A quota that the run had from its start will stop it again.
    assert is_throttled(found) is (is_void and bool(quotas))
    off = record({**run, "settings": {**GATE, "noise_gate": False}})
    assert outcome.run_outcome(off) == "ok"
    assert ("NOISE_GATE=false" in found) is is_throttled(found)
    for text in (found, *noise.warnings(off)) if is_void else ():
        assert "64.3 % of a core's time" in text
        for part in ("0.7 cores", "broker, steadyd", "/sys/fs/cgroup/cpu/small"):
            assert (part in text) is bool(quotas)


def test_a_rate_that_was_missed_because_of_others_is_void_and_a_wrong_view_is_wrong() -> None:
    noise = {**NOISE_FIGURES, "foreign_cpu_pct": 50.0}
    recorded = {"results": {"noise": noise, "achieved_events_per_s": 4900.0}, "settings": GATE}
    assert outcome.run_outcome(record(recorded)).startswith("Void: ")
    wrong = {**recorded, "verified": verified(items=WRONG)}
    assert outcome.run_outcome(record(wrong)) == "Views are wrong: items"


RIGHT, WRONG, ABSENT = {"status": "right"}, {"status": "wrong"}, {"status": "absent"}


@pytest.mark.parametrize(
    ("views", "drained_after_s", "expected"),
    [
        ({"users": RIGHT, "hvu_test": ABSENT}, 1.0, "ok"),
        ({"users": RIGHT, "items": WRONG}, 1.0, "Views are wrong: items"),
        ({"items": WRONG}, None, "Views are wrong: items, and the engine had not drained"),
        ({"users": {"status": "unreadable"}}, 0.0, "Views are wrong: users"),
        ({"users": ABSENT}, 0.0, "No view could be verified"),
    ],
)
def test_a_wrong_view_is_named(
    views: dict[str, Any], drained_after_s: float | None, expected: str
) -> None:
    found = verified(**views) | {"drained_after_s": drained_after_s}
    assert outcome.run_outcome(record({"verified": found})).startswith(expected)


LATE = SyntheticRun(rate_per_s=4_000, delay_ms=500, cycle_ms=1_000)
RUN_KINDS = (
    LATE,
    replace(LATE, cycle_ms=50, delay_ms=20, noise_ms=5),
    replace(LATE, leak=0.3),
    replace(LATE, pause_at_ms=10_000, pause_ms=4_000),
    replace(LATE, rate_per_s=40, cycle_ms=50, delay_ms=250, noise_ms=5),
    replace(LATE, stalled_partition=1, stalled_at_ms=-1_000),
)


def checked(
    recorded: Curves,
    run: SyntheticRun,
    totals_of: Curves | None = None,
    summary_after_ms: float = 0.0,
) -> LittlesLaw:
    """Check Little's law on these curves. The engine's totals are those of `totals_of`, a correct
    record of the same run."""
    true = totals_of or recorded
    due = [sum(row) for row in zip(*(c.count for c in true.due), strict=True)]
    arrivals = [
        raw.Arrival(int(at), int(n), int(n)) for at, n in zip(true.due[0].at_ms, due, strict=True)
    ]
    times = np.unique(np.concatenate([curve.at_ms for curve in true.processed]))
    counted = np.zeros(len(times))
    for curve in true.processed:
        rows = np.searchsorted(curve.at_ms, times, "right")
        counted += np.concatenate([[0.0], curve.count])[rows]
    delays = [raw.Delay(int(t), int(n), 0, 0.0) for t, n in zip(times, counted, strict=True)]
    found = lag.littles_law(
        recorded, arrivals, delays, *run.window, summary_after_ms=summary_after_ms
    )
    assert found
    return found


def curves(run: SyntheticRun) -> Curves:
    return synthetic.curves(run, np.random.default_rng(7))


def later(recorded: Curves, by_ms: float) -> Curves:
    return changed(recorded, lambda c: Curve(c.at_ms + by_ms, c.count), "processed")


@pytest.mark.parametrize("run", RUN_KINDS)
def test_it_holds_where_the_records_agree(run: SyntheticRun) -> None:
    found = checked(curves(run), run)
    assert found.holds
    assert found.waiting == pytest.approx(found.rate_times_age, abs=run.partitions / 2)


def test_both_sides_are_the_truth() -> None:
    run = replace(LATE, cycle_ms=50, delay_ms=500, noise_ms=0)
    found = checked(curves(run), run)
    # The mean age is the delay, half a cycle, and 1 % of a cycle for the engine's own time.
    sides = (found.rate_times_age, found.waiting)
    assert sides == pytest.approx([4 * (500 + 25.5)] * 2, rel=0.01)


@pytest.mark.parametrize("by_ms", [-100.0, -20.0, 20.0, 100.0])
def test_rows_with_wrong_times_break_it(by_ms: float) -> None:
    """At this rate and age, the tolerance is 16 ms: 1 %, and the rounding to milliseconds."""
    recorded = curves(LATE)
    found = checked(later(recorded, by_ms), LATE, totals_of=recorded)
    assert not found.holds
    assert found.rate_times_age - found.waiting == pytest.approx(4 * by_ms, abs=4)


def test_an_engine_may_report_its_total_later_than_its_progress() -> None:
    true = curves(LATE)
    late = later(true, 20.0)
    broken = checked(true, LATE, late)
    assert not broken.holds and broken.waiting > broken.rate_times_age
    assert checked(true, LATE, late, summary_after_ms=25.0).holds


def test_a_partition_left_out_of_all_curves_breaks_it() -> None:
    recorded = curves(LATE)
    names = ("partitions", "due", "handed_over", "published", "processed")
    fewer = Curves(**{name: getattr(recorded, name)[1:] for name in names})
    found = checked(fewer, LATE, totals_of=recorded)
    assert not found.holds
    assert found.ratio == pytest.approx(0.75, abs=0.01)


def test_messages_counted_twice_break_it_and_without_a_record_it_is_not_checked() -> None:
    recorded = curves(LATE)
    twice = changed(recorded, lambda c: Curve(c.at_ms, c.count + 200), "processed")
    assert not checked(twice, LATE, totals_of=recorded).holds
    assert lag.littles_law(recorded, [], [], *LATE.window) is None
