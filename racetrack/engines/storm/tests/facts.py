"""Facts about Storm's service that the tests of all native services need."""

from tests.service_facts import Facts

FACTS = Facts(
    launched=("storm",),
    files={"storm": ("lib/storm-server-2.8.3.jar", "lib/kafka-clients-4.3.1.jar")},
    versions={"storm": "2.8.3"},
    other_values={
        "STORM_GUARANTEE": "at_most_once",
        "STORM_PROPERTIES": "topology.producer.batch.size=100",
    },
    jvm_of={"STORM_HEAP": "storm"},
    image_of={"STORM_HEAP": ("storm", "eclipse-temurin")},
)
