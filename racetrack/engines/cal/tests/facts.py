"""Facts about the calibration engine's service that the tests of all native services need."""

from importlib.metadata import version

from tests.service_facts import Facts

FACTS = Facts(launched=("cal",), versions={"confluent-kafka": version("confluent-kafka")})
