"""Facts about Deephaven's service that the tests of all native services need."""

from racetrack.engines.dh.server import jvm_args
from tests.service_facts import Facts

FACTS = Facts(
    launched=("deephaven",),
    files={
        "deephaven": (
            "bin/python",
            "lib/python3.11/site-packages/deephaven_server-42.7.dist-info/METADATA",
            "lib/python3.11/site-packages/deephaven_server/jars/a-1.0.jar",
        )
    },
    versions={"deephaven": "42.7"},
    other_values={"DEEPHAVEN_URL": "https://deephaven.example:10000"},
    jvm_of={"DEEPHAVEN_HEAP": "deephaven"},
    image_of={"DEEPHAVEN_HEAP": ("deephaven", "ghcr.io/deephaven/server")},
    inner_jvm={"deephaven": jvm_args},
)
