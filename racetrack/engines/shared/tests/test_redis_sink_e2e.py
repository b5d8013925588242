"""The stack with its Redis, and an engine that a test plays, which counts some events twice."""

import pytest

from racetrack.engines.shared.tests.redis_player import Player, race
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


def test_what_an_engine_counts_twice_is_reported_in_events() -> None:
    run = read_run(race(Player(twice=90), 1_000, 8))
    published = run["results"]["published_pageviews"]
    of = f"90 of {published:,}"
    assert run["outcome"] == f"The engine counted {of} pageviews twice: {published + 90:,}"
    assert run["results"]["verdict"]["reason"].startswith(
        f"The engine counted {of} pageviews twice"
    )
    verified = run["verified"]
    assert verified["drained_after_s"] is not None
    found = {name: view.get("miscounted") for name, view in verified["views"].items()}
    twice = {"events": published, "twice": 90, "lost": 0, "still_counting": False}
    assert found["ad_events_progress"] == found["ad_events_summary"] == twice
    # About a third are views.
    windows = found["campaign_windows"]
    assert windows["lost"] == 0
    assert 0 < windows["twice"] < 90
    assert found["ads"] is None
