"""Configuration of Debezium's connector, without its passwords and files."""

from racetrack.config import Settings
from racetrack.stack import net
from racetrack.workloads.contract import CDC_PREFIX, find_workload

CLASS = "io.debezium.connector.mysql.MySqlConnector"
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
SIDES = ("key", "value")


def full_names(settings: Settings) -> list[str]:
    """Return the names of the workload's tables as `<database>.<table>`."""
    database = net.mysql(settings).database
    return [f"{database}.{table}" for table in find_workload(settings.workload).tables]


def options(settings: Settings) -> dict[str, str]:
    """Return the options of the connector, without passwords and paths of files."""
    kafka, mysql = net.kafka(settings), net.mysql(settings)
    return {
        "connector.class": CLASS,
        "tasks.max": "1",
        "topic.prefix": kafka.topic(CDC_PREFIX),
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": str(kafka.replication_factor),
        "database.hostname": mysql.host,
        "database.port": str(mysql.port),
        "database.user": mysql.reader,
        "database.include.list": mysql.database,
        "table.include.list": ",".join(full_names(settings)),
        "driver.allowPublicKeyRetrieval": "true",
        "snapshot.mode": "initial",
        # Without a lock, neither the snapshot nor the stream would contain a purchase that happens
        # after the snapshot's start, but before Debezium reads the binlog position. The lock delays
        # such a purchase by some milliseconds.
        "snapshot.locking.mode": "minimal",
        "poll.interval.ms": "5",
        # Time until Debezium notices that the connection to MySQL was lost; the default is 60 s.
        "connect.keep.alive.interval.ms": "5000",
        "decimal.handling.mode": "precise",
        # Without this transform Apicurio's converter replaces NULL by a column's default.
        "transforms": "keepNulls",
        "transforms.keepNulls.type": "racetrack.debezium.KeepNulls",
        "include.schema.changes": "false",
        # With tombstones, some engines would keep a deleted row as a row of nulls.
        "tombstones.on.delete": "false",
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
        # Unique among MySQL's replicas, of which Debezium is one.
        "database.server.id": str(settings.connect_port),
        "database.ssl.mode": "disabled",
    }


def converters(registry: str) -> dict[str, str]:
    """Return the options of converters that write Avro in Confluent's framing. `registry` is the
    URL of Apicurio's API, version 2."""
    shared = {
        "registry.url": registry,
        "registry.auto-register": "true",
        "registry.find-latest": "true",
        "registry.as-confluent": "true",
        "registry.use-id": "contentId",
        "registry.headers.enabled": "false",
    }
    return {
        **{f"{side}.converter": CONVERTER for side in SIDES},
        **{
            f"{side}.converter.apicurio.{key}": value
            for side in SIDES
            for key, value in shared.items()
        },
    }
