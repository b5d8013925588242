"""Tests of what a live session reports: the lag of traced views, and the bottleneck."""

import pytest

from racetrack.run.live.figures import CurrentVerdict, oldest_missing_ms
from racetrack.run.live.messages import bottleneck
from racetrack.workloads.contract import TracedView

PARTITIONS = 3
# The newest of 1,000 tracer events was due at 100 s; there are ten a second.
MARKS = {"newest": [1_000, 100_000], "rate": 10}


def view(parity: int | None, *, is_time: bool = False) -> TracedView:
    return TracedView("sold", "views", "item_id", "items", "pageviews", parity, is_time)


def numbers_in(parity: int | None, partition: int, until: int) -> list[int]:
    """Return the numbers of the tracer events up to `until` that are in a partition of the view."""
    return [
        n
        for n in range(until)
        if n // 2 % PARTITIONS == partition and (parity is None or n % 2 == parity)
    ]


@pytest.mark.parametrize("parity", [None, 0, 1])
@pytest.mark.parametrize("is_time", [False, True])
def test_the_oldest_missing_tracer_event_is_found(parity: int | None, is_time: bool) -> None:
    """The view has all tracer events up to number 899, and those of two partitions up to 949."""
    traced, values, missing = view(parity, is_time=is_time), {}, []
    for partition, until in enumerate((950, 900, 950)):
        known = numbers_in(parity, partition, until)
        due_ms = 100_000 - (999 - known[-1]) * 100
        values[traced.name, partition] = due_ms if is_time else len(known)
        missing.append(numbers_in(parity, partition, 1_000)[len(known)])
    expected_ms = 100_000 - (999 - min(missing)) * 100
    assert oldest_missing_ms(traced, values, MARKS, PARTITIONS) == pytest.approx(expected_ms)


KEPT_UP, FELL_BEHIND, BROKER_BOUND = "kept up", "fell behind", "broker-bound"


@pytest.mark.parametrize(
    ("kinds", "busy_pct", "what"),
    [
        ((KEPT_UP, KEPT_UP), None, "nothing"),
        ((KEPT_UP, KEPT_UP), 99.5, "cores"),
        ((KEPT_UP, FELL_BEHIND), 99.0, "cores"),
        ((FELL_BEHIND, KEPT_UP), 50.0, "engine"),
        ((FELL_BEHIND, BROKER_BOUND), 99.0, "broker"),
    ],
)
def test_the_bottleneck_is_named(kinds: tuple[str, str], busy_pct: float | None, what: str) -> None:
    verdicts = {
        name: CurrentVerdict(kind, "why") for name, kind in zip(("dh", "pg"), kinds, strict=True)
    }
    assert bottleneck(verdicts, busy_pct)["what"] == what
