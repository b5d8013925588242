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
    """Return the connector's name in Kafka Connect, which is unique if others use that too."""
    return RUN_NAME if settings.connect_url else settings.workload


def full_names(settings: Settings) -> list[str]:
    """Return the names of the workload's tables, with their database."""
    database = net.mysql(settings).database
    return [f"{database}.{table}" for table in find_workload(settings.workload).tables]


def options(settings: Settings, transforms: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the connector, without passwords and places of files. `transforms` maps
    the names of further transforms to their classes."""
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
        # after the snapshot's start, but before Debezium reads the binlog position. This lock is
        # delayed by some milliseconds.
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
    """Return options of both converters."""
    return {f"{side}.converter.{key}": value for side in SIDES for key, value in shared.items()}


def _for_own_mysql(settings: Settings) -> dict[str, str]:
    return {
        "database.server.id": str(settings.connect_port),  # unique among MySQL's replicas
        "database.ssl.mode": "disabled",
    }


def _for_shared_mysql(settings: Settings) -> dict[str, str]:
    mysql = net.mysql(settings)
    return {
        "database.server.id": str(zlib.crc32(mysql.database.encode()) or 1),
        "database.ssl.mode": "verify_identity" if mysql.ca_file else "preferred",
        # Debezium's documented settings lock all tables of the server. This one locks the run's.
        "internal.test.disable.global.locking": "true",
    }


def _renamed(settings: Settings) -> dict[str, str]:
    """Return the options of a transform that gives the topics the names that they have with the
    stack's own MySQL."""
    return {
        "transforms.rename.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.rename.regex": rf"(.*\.){net.mysql(settings).database}(\..*)",
        "transforms.rename.replacement": f"$1{find_workload(settings.workload).database}$2",
    }
