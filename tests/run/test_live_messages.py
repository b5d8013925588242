"""Tests of the bottleneck that a live session reports."""

import pytest

from racetrack.run.live.figures import CurrentVerdict
from racetrack.run.live.messages import bottleneck

KEPT_UP, FELL_BEHIND, BROKER_BOUND = "kept up", "fell behind", "broker-bound"


@pytest.mark.parametrize(
    ("kinds", "busy_pct", "what", "text"),
    [
        ((KEPT_UP, KEPT_UP), 50.0, "nothing", ""),
        ((KEPT_UP, KEPT_UP), None, "nothing", ""),
        ((KEPT_UP, KEPT_UP), 99.5, "cores", "100 % of all cores are busy."),
        ((KEPT_UP, FELL_BEHIND), 99.0, "cores", "99 % of all cores are busy, and pg fell behind."),
        ((FELL_BEHIND, KEPT_UP), 50.0, "engine", "dh fell behind, with cores to spare."),
        ((FELL_BEHIND, BROKER_BOUND), 99.0, "broker", "why"),
    ],
)
def test_the_bottleneck_is_named(
    kinds: tuple[str, str], busy_pct: float | None, what: str, text: str
) -> None:
    verdicts = {
        name: CurrentVerdict(kind, "why") for name, kind in zip(("dh", "pg"), kinds, strict=True)
    }
    assert bottleneck(verdicts, busy_pct) == {"what": what, "text": text}
