"""Tests of messages that the broker deleted before the engine had counted them: their number, and
that there is neither lag nor verdict."""

from dataclasses import replace
from pathlib import Path

import pytest

from racetrack.analysis import curves
from racetrack.analysis.curves import Curves, RecentCurves, deleted_unread
from racetrack.analysis.verdict import judge
from racetrack.results.figures import VerdictKind
from simulations import synthetic
from tests.analysis.test_lag import curve, one_partition

Rows = tuple[tuple[float, float], ...]
DELETED = (6_000.0, 4_000.0)  # the start offset is 4,000 from 6 s on
PAUSED: Rows = ((1_000, 950), (2_000, 1_950), (8_000, 5_900), (10_000, 7_900))


def recorded(deleted: tuple[float, float], processed: Rows, until_ms: float = 10_000) -> Curves:
    """Return curves of one partition, of which 9,950 messages are published after 10 s."""
    made = one_partition(curve(*processed), until_ms)
    return replace(made, deleted=(curve(deleted),))


@pytest.mark.parametrize(
    ("deleted", "processed", "expected"),
    [
        ((6_000, 4_000), ((1_000, 950), (5_000, 4_950), (10_000, 9_950)), 0),
        (DELETED, PAUSED, 2_050),
        (DELETED, ((2_000, 1_950), (8_000, 7_950), (10_000, 9_950)), 0),  # the engine held it
        (DELETED, (), 4_000),
        # A killed engine reads again what is left, or continues where it was.
        ((2_500, 1_000), ((2_000, 1_950), (3_000, 0), (4_000, 500), (10_000, 8_950)), 500),
        ((2_500, 1_000), ((2_000, 1_950), (3_000, 0), (4_000, 2_000), (10_000, 2_500)), 0),
    ],
)
def test_only_messages_that_were_never_counted_are_deleted_unread(
    deleted: tuple[float, float], processed: Rows, expected: int
) -> None:
    assert deleted_unread(recorded(deleted, processed)) == expected


def test_the_number_is_exact_once_the_engine_has_drained() -> None:
    processed = ((2_000, 1_950), (7_000, 3_000), (10_000, 6_000))
    assert deleted_unread(recorded(DELETED, processed)) == 2_050
    paused = replace(
        recorded(DELETED, processed, until_ms=30_000),
        published=(curve((0, 0), (10_000, 9_950), (30_000, 9_950)),),
    )
    assert deleted_unread(paused) == 3_950


def test_there_is_no_lag_and_no_verdict() -> None:
    found = judge(recorded(DELETED, PAUSED), 1_000, 9_000)
    assert (found.kind, found.measured) == (VerdictKind.UNDECIDED, None)
    assert "2,050 events" in found.reason


def test_start_offsets_are_read_and_may_be_absent(tmp_path: Path) -> None:
    synthetic.write(recorded(DELETED, PAUSED), tmp_path)
    assert deleted_unread(curves.read(tmp_path)) == 0
    with (tmp_path / curves.FILE).open("a") as file:
        file.write("6000,deleted,0,4000\n")
    assert deleted_unread(curves.read(tmp_path)) == 2_050


def test_a_live_session_shows_no_lag_unless_the_engine_counts_everything_later() -> None:
    recent = RecentCurves()
    for name in ("due", "handed_over", "published"):
        recent.add("", 0, name, [(0, 0)])
        recent.add("", 10_000, name, [(0, 9_950)])
    recent.add("dh", 2_000, "processed", [(0, 1_950)])
    assert recent.backlog("dh") == 8_000
    recent.add("", 10_000, "deleted", [(0, 4_000)])
    assert recent.lag_ms("dh", 10_000) is None
    recent.add("dh", 11_000, "processed", [(0, 7_900)])
    assert recent.backlog("dh") is None
    made = recent.curves("dh")
    assert made and deleted_unread(made) == 2_050
    recent.add("dh", 12_000, "processed", [(0, 9_950)])
    assert recent.backlog("dh") == 0
