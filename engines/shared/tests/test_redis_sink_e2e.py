"""The stack with its Redis, seeded by the generator, and an engine that a test plays: verified."""

import pytest

from engines.shared.tests.redis_player import Player, race
from racetrack.workload import find_workload
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


def test_views_in_redis_are_right() -> None:
    run = read_run(race(Player(), 1_000, 8))
    found = {name: view["status"] for name, view in run["verified"]["views"].items()}
    assert found == {view.name: "right" for view in find_workload("ads").views}
    assert run["verified"]["views"]["ads"]["compared"] == 1_000
    results = run["results"]
    assert results["processed_pageviews"] == results["published_pageviews"] > 8_000
    assert results["verdict"]["updates"] > 8
    assert results["processes"]["redis"]["cpu_s"] > 0
    assert run["versions"]["redis"]
