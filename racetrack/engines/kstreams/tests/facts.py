"""Facts about Kafka Streams' service that the tests of all native services need."""

from tests.service_facts import Facts

FACTS = Facts(
    launched=("kstreams",),
    files={"kstreams": ("lib/kafka-streams-4.3.1.jar", "lib/kafka-clients-4.3.1.jar")},
    versions={"kafka-streams": "4.3.1"},
    other_values={
        "KSTREAMS_GUARANTEE": "exactly_once_v2",
        "KSTREAMS_STORE": "in_memory",
        "KSTREAMS_CHANGELOG": "off",
        "KSTREAMS_AFTER_A_KILL": "anew",
        "KSTREAMS_PROPERTIES": "producer.batch.size=9999",
        "KSTREAMS_JVM_OPTIONS": "-Dracetrack.kstreams=1",
    },
    changed_from={"KSTREAMS_JVM_OPTIONS": {"KSTREAMS_JVM_OPTIONS": "-Dracetrack.before=1"}},
    jvm_of={"KSTREAMS_HEAP": "kstreams"},
    image_of={"KSTREAMS_HEAP": ("kstreams", "eclipse-temurin")},
)
