"""Facts about PostgreSQL's services, the server and its feeder, that the tests of all native
services need."""

from importlib.metadata import version

from racetrack.engines.pg.services import postgres
from tests.service_facts import Facts

FACTS = Facts(
    launched=("pgfeed",),
    versions={name: version(name) for name in ("confluent-kafka", "fastavro", "psycopg")},
    other_values={
        "POSTGRES_SHARED_BUFFERS": "123MB",
        "POSTGRES_URL": "postgres://me@a.example/database",
    },
    configured=postgres.configuration,
)
