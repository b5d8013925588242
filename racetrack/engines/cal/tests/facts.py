"""What the tests of all native services have to know of the calibration engine's."""

from importlib.metadata import version

from tests.service_facts import Facts

FACTS = Facts(launched=("cal",), versions={"confluent-kafka": version("confluent-kafka")})
