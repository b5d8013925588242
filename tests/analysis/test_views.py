"""Tests of view lag from tracer events, with files of views whose age is known."""

from pathlib import Path

import numpy as np
import pytest

from racetrack.analysis import views
from racetrack.analysis.capacity import work
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import age
from racetrack.analysis.verdict import judge
from racetrack.results.figures import Verdict, VerdictKind
from racetrack.results.run import TracedViewRecord
from tests.analysis.view_files import EVERY_MS, PARTITIONS, START_MS, write

PRODUCTS = TracedViewRecord(name="sold.views", source="pageviews", parity=0, is_time=False)
PROFILES = TracedViewRecord(name="seen.at", source="pageviews", parity=1, is_time=True)
ORDERS = TracedViewRecord(name="sold.orders", source="purchases", parity=None, is_time=False)

each_view = pytest.mark.parametrize(
    "view", [PRODUCTS, PROFILES, ORDERS], ids=lambda view: view.name
)
WINDOW = START_MS + 5_000, START_MS + 50_000


def curves(folder: Path, view: TracedViewRecord) -> Curves:
    events = views.read_tracer_events(folder)
    assert events
    return views.curves_of(view, events, range(PARTITIONS))


@each_view
@pytest.mark.parametrize("delay_ms", [20, 1_250])
def test_a_view_is_as_old_as_its_oldest_tracer_event_that_is_missing(
    tmp_path: Path, view: TracedViewRecord, delay_ms: int
) -> None:
    """The age rises to the delay. When the view shows the next tracer event, it falls by the
    interval between tracer events."""
    write(tmp_path, [view], delay_ms)
    between_ms = EVERY_MS * (1 if view.parity is None else 2)
    recorded = age(curves(tmp_path, view), *WINDOW)
    p50, most = recorded.quantiles_ms((0.5, 1.0))
    assert most == pytest.approx(delay_ms, abs=2)
    expected_ms = delay_ms - between_ms / 2 if delay_ms > between_ms else 0
    assert p50 == pytest.approx(expected_ms, abs=2)


@pytest.mark.parametrize(("view", "intervals"), [(PRODUCTS, 2), (PROFILES, 2), (ORDERS, 1)])
def test_the_error_of_a_view_s_age_is_the_time_between_its_tracer_events(
    tmp_path: Path, view: TracedViewRecord, intervals: int
) -> None:
    write(tmp_path, [view], 500)
    recorded = curves(tmp_path, view)
    assert views.spacing_ms(recorded, *WINDOW) == pytest.approx(intervals * EVERY_MS)
    assert views.spacing_ms(recorded, WINDOW[0], WINDOW[0] + EVERY_MS / 2) is None


@each_view
def test_a_view_that_gets_ever_older_fell_behind(tmp_path: Path, view: TracedViewRecord) -> None:
    write(tmp_path, [view], 500, growing=0.1)
    found = judge(curves(tmp_path, view), *WINDOW)
    assert found.kind is VerdictKind.FELL_BEHIND
    assert found.measured
    assert found.measured.slope.pct == pytest.approx(10 / 1.1, rel=0.1)


@each_view
def test_tracer_events_from_before_the_recording_are_known_by_the_rate_of_those_after(
    tmp_path: Path, view: TracedViewRecord
) -> None:
    write(tmp_path, [view], 8_000)
    window = START_MS + 12_500, START_MS + 50_000
    whole = age(curves(tmp_path, view), *window).quantiles_ms((0.5, 1.0))
    events = tmp_path / "tracer_events.csv"
    header, *rows = events.read_text().splitlines()
    events.write_text("\n".join([header, *rows[120:]]) + "\n")
    late = age(curves(tmp_path, view), *window).quantiles_ms((0.5, 1.0))
    assert late == pytest.approx(whole, abs=1)
    assert late[1] == pytest.approx(8_000, abs=2)


@each_view
def test_a_window_up_to_the_last_row_is_judged_too(tmp_path: Path, view: TracedViewRecord) -> None:
    """Even the file's last tracer event must not count as missing before it is due."""
    write(tmp_path, [view], 5)
    for events in range(400, 412):
        rows = (tmp_path / "tracer_events.csv").read_text().splitlines()[: events + 1]
        folder = tmp_path / str(events)
        folder.mkdir()
        (folder / "tracer_events.csv").write_text("\n".join(rows) + "\n")
        (folder / "views.csv").write_text((tmp_path / "views.csv").read_text())
        last_ms = int(rows[-1].split(",")[0])
        found = judge(curves(folder, view), START_MS + 5_000, last_ms)
        assert found.kind is VerdictKind.KEPT_UP, found.reason


@pytest.mark.parametrize("view", [PRODUCTS, PROFILES], ids=lambda view: view.name)
@pytest.mark.parametrize("growing", [0.0, 0.25])
def test_a_view_processes_the_pageviews_due_before_its_oldest_missing_event(
    tmp_path: Path, view: TracedViewRecord, growing: float
) -> None:
    """The view processes 3,000/s, minus the rate at which its lag grows."""
    write(tmp_path, [view], 10_000, growing=growing)
    at_ms = np.arange(0.0, 150_000, 100.0)
    due = (Curve(START_MS + at_ms, at_ms),) * PARTITIONS  # 1,000/s each
    none = (Curve(np.empty(0), np.empty(0)),) * PARTITIONS
    count = Curves(tuple(range(PARTITIONS)), due, due, due, none)
    recorded = views.as_events(curves(tmp_path, view), count)
    found = work(recorded, START_MS + 40_000, START_MS + 120_000, 30)
    assert found.per_s == pytest.approx(3_000 / (1 + growing), rel=0.02)
    assert found.is_capacity


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, [PRODUCTS], 20)
    before = views.read_tracer_events(tmp_path)
    for name, half in (("tracer_events.csv", "17950001"), ("views.csv", "1795000100000,sold.vi")):
        with (tmp_path / name).open("a") as file:
            file.write(half)
    after = views.read_tracer_events(tmp_path)
    assert before and after
    assert after.view_rows == before.view_rows
    assert len(after.at_ms) == len(before.at_ms)


@pytest.mark.parametrize(
    ("count", "kinds", "expected"),
    [
        ("kept up", ["kept up"], "kept up"),
        ("kept up", ["kept up", "fell behind", "undecided"], "fell behind"),
        ("kept up", ["undecided"], "undecided"),
        ("fell behind", ["kept up"], "fell behind"),
        ("undecided", ["kept up"], "undecided"),
        ("kept up", [], "kept up"),
        ("generator-bound", ["fell behind"], "generator-bound"),
    ],
)
def test_the_worst_view_decides(
    tmp_path: Path, count: str, kinds: list[str], expected: str
) -> None:
    write(tmp_path, [PRODUCTS], 500)
    found: Verdict = judge(curves(tmp_path, PRODUCTS), *WINDOW)
    assert found.kind is VerdictKind.KEPT_UP
    assert found.throughput.offered_per_s == pytest.approx(5, rel=0.05)

    def of(kind: str) -> Verdict:
        return found.model_copy(update={"kind": VerdictKind(kind)})

    decides = views.deciding(of(count), {f"{kind} view": of(kind) for kind in kinds})
    assert decides == (None if expected == count else f"{expected} view")
