"""Spark in containers, on the workload that its other tests run least: verified."""

from collections.abc import Callable

import pytest

from racetrack.settings import Settings
from racetrack.workload import find_workload
from tests.e2e.shared import Door, ended_well

pytestmark = pytest.mark.e2e

RUN = ("run_experiment.sh", "spark", "500", "5", "10", "1.0", "--verify", "--workload", "ads")


def test_every_view_is_right(contained: Settings, door: Callable[..., Door]) -> None:
    run = ended_well(door(*RUN))
    assert run["runtime"] == "compose"
    assert {name: view["status"] for name, view in run["verified"]["views"].items()} == {
        view.name: "right" for view in find_workload("ads").views
    }
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"] > 5_000
    assert run["versions"]["spark"]
    assert run["results"]["processes"]["spark"]["cpu_s"] > 0
