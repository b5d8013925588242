"""End-to-end tests of the baseline engine (PostgreSQL): all its views are right after updates and
deletions, and after both of its services were killed."""

from collections.abc import Callable

import pytest

from racetrack.workloads.shop.catalogue import VIEWS
from tests.e2e.shared import (
    Door,
    check_answers,
    check_views_after_a_kill,
    check_views_followed,
    purchases_without_marks,
    run_folder,
    write_odd_rows,
)
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

TRACER_EVENTS_PER_S = 12


def test_every_view_is_right_after_updates_deletions_and_a_crash(
    door: Callable[..., Door], nothing_left: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPDATES_PER_SECOND", "30")
    monkeypatch.setenv("DELETES_PER_SECOND", "5")
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", str(TRACER_EVENTS_PER_S))
    monkeypatch.setenv("READS_PER_SECOND", "6")
    arguments = ("2000", "5", "15", "1.0", "--verify", "--fault", "kill:engine@6s")
    run_experiment = door("run_experiment.sh", "pg", *arguments)
    write_odd_rows(run_experiment)
    run_experiment.wait()
    run = read_run(run_folder(run_experiment.output))
    check_views_after_a_kill(run, run_experiment)
    assert run["verified"]["views"].keys() == {view.name for view in VIEWS}
    for name, view in run["verified"]["views"].items():
        assert view["compared"] > 0, name
    # Rows were deleted: there were 1,000 purchases at first, and each second added three.
    assert purchases_without_marks(run, run_folder(run_experiment.output)) < 1_000
    check_views_followed(run, run_folder(run_experiment.output), TRACER_EVENTS_PER_S)
    check_answers(run)
    times_ms = {read["query"]: read["service_time"]["p50_ms"] for read in run["results"]["reads"]}
    # The first query counts all pageviews; the second one uses an index.
    slow, fast = "top_viewed_items", "profile_views_enriched by owner_id"
    assert times_ms[slow] > 2 * times_ms[fast], times_ms
    assert any(read["errors"] for read in run["results"]["reads"])  # while the server was dead
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"] > 20_000
    assert set(run["measured"]["cpu_s"]) >= {"postgres", "pgfeed"}
    nothing_left()
