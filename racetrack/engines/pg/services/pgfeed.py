"""Service `pgfeed`: the consumer that feeds PostgreSQL from Kafka (`racetrack/engines/pg/feed`)."""

from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.pg.elsewhere import ELSEWHERE
from racetrack.engines.pg.services import postgres
from racetrack.engines.pg.settings import PostgresSettings
from racetrack.engines.shared.python_program import PythonProgram
from racetrack.stack import net
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.services import registry


def _environment(settings: Settings) -> Mapping[str, str]:
    return {
        "SCHEMA_REGISTRY_URL": registry.url(settings),
        **_database(PostgresSettings.of(settings)),
        "POSTGRES_BATCH_MS": str(PostgresSettings.of(settings).postgres_batch_ms),
    }


def _database(own: PostgresSettings) -> Mapping[str, str]:
    """Return the environment variables with the address of the database that contains the
    tables."""
    if ELSEWHERE.address(own):
        return {"PGFEED_URL": own.postgres_url.get_secret_value(), "PGFEED_SCHEMA": RUN_NAME}
    return {
        "PGHOST": net.host(own),
        "PGPORT": str(own.postgres_port),
        "PGUSER": postgres.USER,
        "PGDATABASE": postgres.DATABASE,
        "PGPASSWORD": own.postgres_password.get_secret_value(),
    }


SERVICE = PythonProgram(
    "pgfeed",
    "racetrack.engines.pg.feed.consumer",
    # Loadgen and Debezium create the topics that it reads.
    after=("postgres", "loadgen", "debezium"),
    environment=_environment,
    # The tables are not checked, because the demo's script creates them later.
    not_ready="it has not reached PostgreSQL and the broker yet",
    libraries=("confluent-kafka", "fastavro", "psycopg"),
)
