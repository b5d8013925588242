"""Facts about Pathway's service that the tests of all native services need."""

from racetrack.engines.pathway.recipe import LOCK
from racetrack.install import pypi
from tests.service_facts import Facts

VERSIONS = {name: pypi.pinned(LOCK, name) for name in ("pathway", "confluent-kafka", "fastavro")}
PACKAGES = "lib/python3.11/site-packages"

FACTS = Facts(
    launched=("pathway",),
    files={
        "pathway": (
            "bin/python",
            *(
                f"{PACKAGES}/{name.replace('-', '_')}-{version}.dist-info/METADATA"
                for name, version in VERSIONS.items()
            ),
        )
    },
    versions=VERSIONS,
    other_values={"PATHWAY_PROPERTIES": "PATHWAY_IGNORE_ASSERTS=1"},
)
