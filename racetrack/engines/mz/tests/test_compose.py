"""Materialize in a container: what `docker compose` understands of its service."""

import json

from racetrack.config import REPO
from tests.compose_files import service


def test_it_gets_exactly_the_workers_asked_for() -> None:
    told = service("materialized", MATERIALIZE_WORKERS="5")["environment"]
    sizes = json.loads(told["MZ_CLUSTER_REPLICA_SIZES"])
    chosen = told["MZ_BOOTSTRAP_DEFAULT_CLUSTER_REPLICA_SIZE"]
    assert (sizes[chosen]["workers"], sizes[chosen]["scale"]) == (5, 1)
    used = {value for name, value in told.items() if name.endswith("CLUSTER_REPLICA_SIZE")}
    assert used == sizes.keys()
    assert told["MZ_NO_TELEMETRY"] == "1"


def test_scripts_are_where_people_paste_them_from() -> None:
    mounts = {each["target"]: each for each in service("mzcli")["volumes"]}
    assert mounts["/scripts"]["source"] == str(REPO / "scripts")
    assert mounts["/scripts"]["read_only"]
