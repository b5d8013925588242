"""A check that engines' tests share: verification in containers, after updates, deletions and a
fault."""

from typing import Any

import pytest

from racetrack.engines import find_engine
from racetrack.workloads.shop.catalogue import VIEWS
from tests.e2e.shared import (
    Door,
    check_views_after_a_kill,
    purchases_without_marks,
    run_folder,
)
from tests.run_json import read_run

CHANGES = {"UPDATES_PER_SECOND": "30", "DELETES_PER_SECOND": "5"}


def check_every_view(
    engine: str, monkeypatch: pytest.MonkeyPatch, fault: str = "", **settings: str
) -> dict[str, Any]:
    """Run a verified experiment, maybe with a fault; check its record, and return it."""
    for name, value in (CHANGES | settings).items():
        monkeypatch.setenv(name, value)
    # Long enough for containers to restart and report updates.
    trouble = ("--fault", fault) if fault else ()
    door = Door("run_experiment.sh", engine, "500", "5", "25", "1.0", "--verify", *trouble)
    door.wait(400)
    run = read_run(run_folder(door.output))
    assert run["runtime"] == "compose"
    check_views_after_a_kill(run, door)
    assert run["verified"]["views"].keys() == {view.name for view in VIEWS}
    # Rows were deleted: there were 1,000 purchases at first, and each second added three.
    assert purchases_without_marks(run, run_folder(door.output)) < 1_000
    services = find_engine(engine).services
    if fault:
        assert run["faults"]["done"][0]["services"] == list(services)
    else:
        assert run["outcome"] == "ok"
    assert run["measured"]["cpu_s"].keys() >= set(services)
    assert run["versions"].keys() >= set(services)
    return run
