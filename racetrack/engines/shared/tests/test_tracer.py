"""Tests that only increases of traced rows are reported, with times in epoch milliseconds."""

from racetrack.engines.contract import Seen
from racetrack.engines.shared.tracer import Tally, only_more, value_in_sql
from racetrack.workloads.contract import find_workload

AT_MS = 1_795_000_000_000


def test_what_is_no_more_than_before_is_left_out_for_each_row_by_itself() -> None:
    found = [
        Seen(AT_MS, "a.b", 0, 3),
        Seen(AT_MS, "a.b", 1, 3),
        Seen(AT_MS + 1, "a.b", 0, 3),
        Seen(AT_MS + 2, "a.c", 0, 0),
        Seen(AT_MS + 3, "a.b", 0, 2),
        Seen(AT_MS + 4, "a.b", 0, 5),
    ]
    assert list(only_more(found)) == [found[0], found[1], found[3], found[5]]


def test_a_count_is_read_as_it_is_and_a_time_in_epoch_milliseconds() -> None:
    traced = {view.name: view for view in find_workload("shop").traced_views}
    assert value_in_sql(traced["item_summary.orders"], "max(orders)") == "max(orders)"
    newest = traced["profile_views_enriched.received_at"]
    in_sql = value_in_sql(newest, newest.column)
    assert in_sql == "(1000 * extract(epoch FROM received_at))::bigint"


def test_the_windows_of_a_partition_are_summed_up() -> None:
    (windows,) = find_workload("ads").traced_views
    tally = Tally()
    rows = [(0, 3, 10_000), (0, 4, 10_000), (1, 9, 10_000), (0, 1, 20_000), (0, 5, 10_000)]
    assert [tally.value(windows, *row) for row in rows] == [3, 4, 9, 5, 6]
