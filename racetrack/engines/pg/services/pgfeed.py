"""Service `pgfeed`: the consumer that feeds PostgreSQL from Kafka (`racetrack/engines/pg/feed`)."""

from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.pg.services import postgres
from racetrack.engines.pg.settings import PostgresSettings
from racetrack.engines.shared.python_program import PythonProgram
from racetrack.stack import net
from racetrack.stack.services import registry


def _environment(settings: Settings) -> Mapping[str, str]:
    own = PostgresSettings.of(settings)
    return {
        "SCHEMA_REGISTRY_URL": registry.url(settings),
        "PGHOST": net.host(settings),
        "PGPORT": str(own.postgres_port),
        "PGUSER": postgres.USER,
        "PGDATABASE": postgres.DATABASE,
        "PGPASSWORD": own.postgres_password.get_secret_value(),
        "POSTGRES_BATCH_MS": str(own.postgres_batch_ms),
    }


SERVICE = PythonProgram(
    "pgfeed",
    "racetrack.engines.pg.feed.consumer",
    after=("postgres", "loadgen", "debezium"),  # loadgen and Debezium create the topics
    environment=_environment,
    # It is ready without tables, since the demo creates them later.
    not_ready="it has not reached PostgreSQL and the broker yet",
    libraries=("confluent-kafka", "fastavro", "psycopg"),
)
