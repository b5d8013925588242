"""Configuration of Debezium's connector, as far as it is the same in every Kafka Connect."""

import zlib
from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.stack import net
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.workloads.contract import CDC_PREFIX, find_workload

CLASS = "io.debezium.connector.mysql.MySqlConnector"
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
SIDES = ("key", "value")


def name(settings: Settings) -> str:
    """Return the connector's name in Kafka Connect. In a Kafka Connect that the user provides, the
    name is unique to this run."""
    return RUN_NAME if settings.connect_url else settings.workload


def full_names(settings: Settings) -> list[str]:
    """Return the names of the workload's tables as `<database>.<table>`."""
    database = net.mysql(settings).database
    return [f"{database}.{table}" for table in find_workload(settings.workload).tables]


def options(settings: Settings, transforms: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the connector, without passwords and paths of files. `transforms` maps
    the names of additional transforms to their classes."""
    kafka, mysql = net.kafka(settings), net.mysql(settings)
    renamed = _renamed(settings) if mysql.is_elsewhere else {}
    named = [*transforms, *(["rename"] if renamed else [])]
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
        "transforms": ",".join(named),
        **{f"transforms.{each}.type": kind for each, kind in transforms.items()},
        "include.schema.changes": "false",
        # With tombstones, some engines would keep a deleted row as a row of nulls.
        "tombstones.on.delete": "false",
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
        **(_for_shared_mysql(settings) if mysql.is_elsewhere else _for_own_mysql(settings)),
        **renamed,
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
        **for_converters({f"apicurio.{key}": value for key, value in shared.items()}),
    }


def for_converters(shared: Mapping[str, str]) -> dict[str, str]:
    """Return these options for both converters: the one for keys and the one for values."""
    return {f"{side}.converter.{key}": value for side in SIDES for key, value in shared.items()}


def _for_own_mysql(settings: Settings) -> dict[str, str]:
    return {
        # Unique among MySQL's replicas, of which Debezium is one.
        "database.server.id": str(settings.connect_port),
        "database.ssl.mode": "disabled",
    }


def _for_shared_mysql(settings: Settings) -> dict[str, str]:
    mysql = net.mysql(settings)
    return {
        "database.server.id": str(zlib.crc32(mysql.database.encode()) or 1),
        "database.ssl.mode": "verify_identity" if mysql.ca_file else "preferred",
        # Lock only the run's tables. With its documented settings, Debezium locks all tables of the
        # server.
        "internal.test.disable.global.locking": "true",
    }


def _renamed(settings: Settings) -> dict[str, str]:
    """Return the options of a transform that renames the topics. They get the names that they would
    have with the stack's own MySQL."""
    return {
        "transforms.rename.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.rename.regex": rf"(.*\.){net.mysql(settings).database}(\..*)",
        "transforms.rename.replacement": f"$1{find_workload(settings.workload).database}$2",
    }
