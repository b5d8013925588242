"""In containers: the engines that are Java programs of ours, and the stack's Redis, seeded by the
generator, with an engine that a test plays. All views are verified."""

from collections.abc import Callable

import pytest

from engines.shared.tests.programs import ENGINES
from engines.shared.tests.redis_player import Player, race
from racetrack.settings import Settings
from racetrack.workload import find_workload
from tests.e2e.shared import Door, ended_well
from tests.run_json import read_run

pytestmark = pytest.mark.e2e


def test_views_in_redis_are_right(contained: Settings) -> None:
    run = read_run(race(Player(), 500, 8))
    assert run["runtime"] == "compose"
    found = {name: view["status"] for name, view in run["verified"]["views"].items()}
    assert found == {view.name: "right" for view in find_workload("ads").views}
    assert run["results"]["processes"]["redis"]["cpu_s"] > 0
    assert run["versions"]["redis"]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_view_of_an_engine_is_right(
    engine: str, contained: Settings, door: Callable[..., Door]
) -> None:
    words = ("500", "5", "10", "1.0", "--verify", "--workload", "ads")
    run = ended_well(door("run_experiment.sh", engine, *words))
    assert run["runtime"] == "compose"
    assert {name: view["status"] for name, view in run["verified"]["views"].items()} == {
        view.name: "right" for view in find_workload("ads").views
    }
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"] > 5_000
    assert run["versions"][engine]
    assert run["results"]["processes"][engine]["cpu_s"] > 0
