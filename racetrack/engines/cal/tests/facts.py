"""Facts about the calibration engine's service that the tests of all native services need."""

from importlib.metadata import version

from tests.service_facts import Facts

FACTS = Facts(
    launched=("cal",),
    versions={name: version(name) for name in ("confluent-kafka", "psycopg")},
    other_values={"CAL_PATH": "postgres"},
)
