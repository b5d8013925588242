"""Tests of the progress that is computed from tracer rows."""

import pytest

from racetrack.engines.contract import Progress, Seen
from racetrack.probes.positions import Positions, Tracer
from racetrack.workloads.contract import ALL_PARTITIONS, TracedView, Windows

PARTITIONS = 2


def view(name: str, parity: int | None = None, *, is_time: bool = False) -> TracedView:
    return TracedView(name, "n", "key", (1, 1), "topic", parity=parity, is_time=is_time)


def tracers(first: int, count: int) -> list[tuple[int, Tracer]]:
    """Return tracer events with their partitions. Each pair of them follows on ten other messages
    of its partition, and is due 100 ms after the pair before."""
    return [
        (n // 2 % PARTITIONS, Tracer(n, 12 * (n // 4 + 1) - 1 + n % 2, 1_000 + 100 * (n // 2)))
        for n in range(first, first + count)
    ]


def following(*views: TracedView) -> Positions:
    """Return the positions after the generator has written eight tracer events."""
    positions = Positions(views, PARTITIONS)
    for partition, event in tracers(0, 8):
        positions.add(partition, event)
    return positions


def totals(positions: Positions, *seen: Seen) -> list[int]:
    return [progress.total for each in seen for progress in positions.take(each)]


@pytest.mark.parametrize(
    ("parity", "counts", "expected"),
    [
        (None, [1, 2, 3, 4], [11, 12, 23, 24]),
        # The other one of a pair never shows in the view.
        (0, [1, 2], [12, 24]),
        (1, [1, 2], [12, 24]),
    ],
)
def test_a_count_is_the_position_of_its_last_tracer_event(
    parity: int | None, counts: list[int], expected: list[int]
) -> None:
    traced = view("q", parity)
    seen = [Seen(count, traced.name, 1, count) for count in counts]
    assert totals(following(traced), *seen) == expected


def test_no_message_is_processed_before_it_is_due() -> None:
    """The second message never shows in the view, and directly follows the first one."""
    positions = Positions([view("q", 0)], 1)
    positions.add(0, Tracer(0, 10, 500))
    (first,) = positions.take(Seen(505, view("q").name, 0, 1))
    positions.add(0, Tracer(1, 11, 512))
    (second,) = positions.progress(0)
    assert [(each.timestamp_ms, each.total) for each in (first, second)] == [(505, 10), (512, 11)]


def test_the_slowest_view_decides() -> None:
    fast, slow = view("fast"), view("slow", 1)
    positions = following(fast, slow)
    assert totals(positions, Seen(1, fast.name, 0, 4)) == []
    assert totals(positions, Seen(2, slow.name, 0, 1), Seen(3, slow.name, 0, 2)) == [12, 24]


def test_a_row_that_comes_before_its_position_counts_from_its_own_time() -> None:
    traced = view("q")
    positions = Positions([traced], PARTITIONS)
    assert totals(positions, Seen(1_050, traced.name, 0, 1)) == []
    for partition, event in tracers(0, 4):
        positions.add(partition, event)
    assert [*positions.progress(0)] == [Progress(1_050, 0, 11, 1_000)]
    assert [*positions.progress(0)] == []
    assert [*positions.progress(1)] == []


def test_a_lost_position_is_replaced_by_the_one_before() -> None:
    traced = view("q")
    positions = Positions([traced], 1)
    for event in (Tracer(0, 10, 5), Tracer(2, 30, 7)):
        positions.add(0, event)
    assert totals(positions, Seen(1, traced.name, 0, 1), Seen(2, traced.name, 0, 2)) == [10]
    assert totals(positions, Seen(3, traced.name, 0, 3)) == [30]


def test_the_summary_adds_the_partitions_up() -> None:
    traced = view("q")
    positions = following(traced)
    assert totals(positions, Seen(1, traced.name, 0, 1), Seen(2, traced.name, 1, 2)) == [11, 12]
    summary = positions.summary(1_300)
    assert (summary.total, summary.max_received_at_ms, summary.dt_ms) == (23, 1_100, 200)


WINDOWS = TracedView("w", "start", "", "", "topic", is_time=True, windows=Windows(10, 5))


def test_a_window_shows_all_events_until_the_next_one_ends() -> None:
    """An event after that is missing until then."""
    positions = Positions([WINDOWS], 1)
    for number, due_ms in enumerate((9, 10, 14, 15)):
        positions.add(0, Tracer(number, 10 * number, due_ms))
    shown = Seen(16, WINDOWS.name, ALL_PARTITIONS, WINDOWS.number(3))  # the window from 0 to 10
    assert totals(positions, shown) == [20]
    positions.add(0, Tracer(4, 40, 19))
    assert [*positions.progress(0)] == []
    later = Seen(21, WINDOWS.name, ALL_PARTITIONS, WINDOWS.number(7))
    assert [*positions.take(later)] == [Progress(21, 0, 40, 19)]


def test_a_count_of_all_partitions_is_a_position_in_each() -> None:
    """Two of three messages are counted; there are four tracer events."""
    counting = TracedView("c", "n", "", "", "topic", counts=lambda position, *_: position * 2 // 3)
    positions = Positions([counting], PARTITIONS)
    # The last two are reported in another order.
    events = [
        (0, Tracer(0, 3, 1)),
        (1, Tracer(2, 6, 2)),
        (1, Tracer(6, 9, 4)),
        (0, Tracer(4, 12, 3)),
    ]
    for partition, event in events:
        positions.add(partition, event)
    seen = [Seen(total, counting.name, ALL_PARTITIONS, total) for total in (1, 2, 5, 6, 12, 14)]
    assert [totals(positions, each) for each in seen] == [[], [3], [], [6], [12], [9]]
