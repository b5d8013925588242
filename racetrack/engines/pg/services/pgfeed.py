"""Service `pgfeed`: the consumer that feeds PostgreSQL from Kafka (`racetrack/engines/pg/feed`). It
runs in the harness's Python."""

import sys
from collections.abc import Mapping
from importlib.metadata import version

from racetrack.config import REPO, Settings
from racetrack.engines.pg.services import postgres
from racetrack.engines.pg.settings import PostgresSettings
from racetrack.stack import net
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.stack.services import registry

READY_FILE = "ready"


class PgFeed:
    """See `racetrack.stack.service.NativeService`."""

    name = "pgfeed"
    parts = ()
    after = ("postgres", "loadgen", "debezium")  # loadgen and Debezium create the topics
    ready_within_s = 30.0

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        settings = PostgresSettings.of(context.settings)
        (context.work / READY_FILE).unlink(missing_ok=True)  # a killed consumer leaves it behind
        return Launch(
            argv=[sys.executable, "-m", "racetrack.engines.pg.feed.consumer"],
            env={
                "KAFKA_BOOTSTRAP": net.kafka(settings),
                "SCHEMA_REGISTRY_URL": registry.url(settings),
                "PGHOST": net.host(settings),
                "PGPORT": str(settings.postgres_port),
                "PGUSER": postgres.USER,
                "PGDATABASE": postgres.DATABASE,
                "PGPASSWORD": settings.postgres_password.get_secret_value(),
                "POSTGRES_BATCH_MS": str(settings.postgres_batch_ms),
                "PGFEED_READY_FILE": str(context.work / READY_FILE),
                "PYTHONPATH": str(REPO),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """Check that the consumer has reached PostgreSQL and the broker. It does not need tables
        yet: the demo creates them later."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has not reached PostgreSQL and the broker yet")

    def versions(self, _context: Context) -> Mapping[str, str]:
        return {name: version(name) for name in ("confluent-kafka", "fastavro", "psycopg")}


SERVICE = PgFeed()
