"""Tests of Materialize's service as `docker compose` reads it."""

import json

from tests.compose_files import service


def test_it_gets_exactly_the_workers_asked_for() -> None:
    environment = service("materialized", MATERIALIZE_WORKERS="5")["environment"]
    sizes = json.loads(environment["MZ_CLUSTER_REPLICA_SIZES"])
    chosen = environment["MZ_BOOTSTRAP_DEFAULT_CLUSTER_REPLICA_SIZE"]
    assert (sizes[chosen]["workers"], sizes[chosen]["scale"]) == (5, 1)
    used = {value for name, value in environment.items() if name.endswith("CLUSTER_REPLICA_SIZE")}
    assert used == sizes.keys()
    assert environment["MZ_NO_TELEMETRY"] == "1"
