"""End-to-end tests of the engines that are Java programs of this repository, in containers:
verification of all their views."""

from collections.abc import Callable

import pytest

from racetrack.config import Settings
from racetrack.engines.shared.tests.programs import ENGINES
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door, ended_well

pytestmark = pytest.mark.e2e


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
