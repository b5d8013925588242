"""Facts about Apex's service that the tests of all native services need."""

from tests.service_facts import Facts

FACTS = Facts(
    launched=("apex",),
    files={"apex": ("lib/apex-engine-3.7.0.jar", "lib/kafka-clients-4.3.1.jar")},
    versions={"apex": "3.7.0"},
    other_values={"APEX_GUARANTEE": "at_most_once", "APEX_LOCALITY": "thread_local"},
    jvm_of={"APEX_HEAP": "apex"},
    image_of={"APEX_HEAP": ("apex", "eclipse-temurin")},
)
