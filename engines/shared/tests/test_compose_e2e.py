"""The stack's Redis in a container, seeded by the generator, and an engine that a test plays."""

import pytest

from engines.shared.tests.redis_player import Player, race
from racetrack.settings import Settings
from racetrack.workload import find_workload
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


def test_views_in_redis_are_right(contained: Settings) -> None:
    run = read_run(race(Player(), 500, 8))
    assert run["runtime"] == "compose"
    found = {name: view["status"] for name, view in run["verified"]["views"].items()}
    assert found == {view.name: "right" for view in find_workload("ads").views}
    assert run["results"]["processes"]["redis"]["cpu_s"] > 0
    assert run["versions"]["redis"]
