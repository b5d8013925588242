"""Debezium in Kafka Connect: publishes every change of the workload's tables as an Avro message."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pymysql

from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import words
from racetrack.stack import debezium_connector, jvm, net
from racetrack.stack.prebuilt import Archive, training
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.stack.services import registry
from racetrack.stack.services.broker import LOG4J, MESSAGE_MAX_BYTES
from racetrack.workloads.contract import Workload, find_workload

# With this provider, Connect reads the password from its environment, so that neither its REST API
# nor its log shows the password.
ENVIRONMENT = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
PASSWORD_VARIABLE = "MYSQL_DEBEZIUM_PASSWORD"  # noqa: S105  # the name, not the password
KAFKA_VARIABLE = "KAFKA_PROPERTY_"
# Messages of a task whose position in MySQL's binary log is gone: of Debezium when it starts, of
# MySQL while Debezium reads.
LOST_BINLOG = ("no longer available on the server", "Error code: 1236")
_BINLOG_FILE = re.compile(r"restartBinlogFilename='?([\w.-]+)")
# Of a stack trace, show at most so many lines, and characters of each line. Only its first line and
# the lines that begin with "Caused by" are shown, because they contain the reason. A long line may
# have it at the end.
TRACE_LINES, TRACE_LINE_CHARS = 4, 300


@dataclass(frozen=True)
class ConnectorStatus:
    """State of the connector and of its task, as reported by Connect."""

    connector: str
    task: str
    trace: str

    @property
    def failure(self) -> str | None:
        """Reason why no more changes will be delivered; None if the connector has not failed."""
        for kind, state in (("connector", self.connector), ("task", self.task)):
            if state == "FAILED":
                if any(message in self.trace for message in LOST_BINLOG):
                    return _lost_binlog(self.trace)
                return f"Debezium's {kind} failed:\n{_shortened(self.trace)}"
            if state in ("PAUSED", "STOPPED"):
                return f"Debezium's {kind} is {state}. It was stopped from outside."
        return None


def connector_status(connect_url: str, connector: str) -> ConnectorStatus | None:
    """Return the status of a connector; None if it is not registered.

    Raises:
        NotReady: Connect does not answer.
    """
    status, answer = net.request(f"{connect_url}/connectors/{connector}/status")
    if status == 404:
        return None
    if status != 200:
        raise NotReady(f"Connect answers with HTTP {status}")
    status_json = json.loads(answer)
    task = next(iter(status_json["tasks"]), {"state": "UNASSIGNED"})
    own = status_json.get("connector", {})
    trace = task.get("trace") or own.get("trace") or ""
    return ConnectorStatus(own.get("state", ""), task["state"], trace)


def _lost_binlog(trace: str) -> str:
    """Describe in one line that MySQL has deleted a binary log that Debezium has still to read."""
    file = _BINLOG_FILE.search(trace)
    which = file[1] if file else "in which Debezium was reading"
    return (
        f"MySQL no longer has the binary log {which}: it was purged or reset before Debezium had"
        " read it, so changes of tables are lost. Run it again, without PURGE or RESET BINARY LOGS,"
        " and with binlog_expire_logs_seconds longer than a run."
    )


def _shortened(trace: str) -> str:
    lines = [line.strip() for line in trace.splitlines() if not re.match(r"\s+(at |\.\.\.)", line)]
    return "\n".join(
        line
        if len(line) <= TRACE_LINE_CHARS
        else f"{line[: TRACE_LINE_CHARS // 2]} … {line[-TRACE_LINE_CHARS // 2 :]}"
        for line in list(filter(None, lines))[:TRACE_LINES]
    )


class Debezium:
    """Debezium as a native service."""

    name = "debezium"
    parts = ("kafka", "debezium")
    after = ()
    ready_within_s = 90.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"CONNECT_PORT": settings.connect_port}

    def launch(self, context: Context) -> Launch:
        archive = Archive(
            self.name,
            "debezium",
            class_path(context),
            training(_launch),
            self._trained,
            ports=("connect_port",),
            peers=("mysql", "broker", "registry", "loadgen"),
        )
        return replace(_launch(context, archive.option(context)), faster=archive)

    def check(self, context: Context) -> None:
        """Register the connector once the tables are seeded; then check that it has registered the
        tables' schemas."""
        state = _state(context.settings)
        if state is None:
            _require_peers(context.settings)
            _register(context)
            raise NotReady("the connector was registered a moment ago")
        if state != "RUNNING":
            raise NotReady(f"the connector's task is {state}")
        workload, kafka = _workload(context.settings), net.kafka(context.settings)
        wanted = {f"{kafka.topic(workload.cdc_topic(table))}-value" for table in workload.tables}
        if missing := wanted - registry.subjects(context.settings):
            raise NotReady(f"not in the schema registry yet: {', '.join(sorted(missing))}")

    def _trained(self, context: Context) -> None:
        """Let the connector take a snapshot, which loads its classes, for the class archive.

        While an image is built, not all peers are running. Then only validate the configuration,
        which loads most classes.
        """
        if context.services:
            self.check(context)
        else:
            _validate(context)

    def versions(self, context: Context) -> Mapping[str, str]:
        plugins = context.parts["debezium"] / "plugins"
        return {
            "debezium": _version(plugins, "debezium-connector-mysql"),
            "avro-converter": _version(plugins, "apicurio-registry-utils-converter"),
            "kafka-connect": _version(context.parts["kafka"], "connect-runtime"),
        }


def class_path(context: Context) -> str:
    """Return one class path with Connect and its two plugins.

    An archive of loaded classes can contain only classes on the class path. Kafka's jars come
    first, so their version of a library is used.
    """
    plugins = context.parts["debezium"] / "plugins"
    return jvm.class_path(
        context.parts["kafka"] / "libs",
        plugins / "debezium-connector-mysql",
        plugins / "apicurio-converter",
    )


def worker_properties(context: Context) -> dict[str, str]:
    """Return the configuration of the Connect worker."""
    settings = context.settings
    listener = net.endpoint(settings.bind_address, settings.connect_port)
    no_plugins = context.work / "plugins"
    return {
        **_kafka_clients(net.kafka(settings)),
        "listeners": f"http://{listener}",
        # The broker may still be starting: retry sooner than the default of one second, and
        # without "rebootstrapping", which multiplies the attempts.
        "reconnect.backoff.max.ms": "200",
        "metadata.recovery.strategy": "none",
        "offset.storage.file.filename": str(context.work / "offsets"),
        # After a crash Debezium resumes from the last flushed offset and repeats later changes.
        "offset.flush.interval.ms": "1000",
        "plugin.path": str(no_plugins),
        "plugin.discovery": "service_load",
        "config.providers": "env",
        "config.providers.env.class": ENVIRONMENT,
        "config.providers.env.param.allowlist.pattern": "|".join(
            [PASSWORD_VARIABLE, *map(_variable, net.kafka(settings).java_properties)]
        ),
        **debezium_connector.converters(registry.native_url(settings)),
        "producer.linger.ms": "0",
        "producer.acks": "1",
        "producer.max.request.size": str(MESSAGE_MAX_BYTES),
        "topic.creation.enable": "true",
    }


def connector_config(context: Context) -> dict[str, str]:
    """Return the configuration of the connector, with a placeholder for the password."""
    settings = context.settings
    return {
        **debezium_connector.options(settings),
        "database.password": f"${{env:{PASSWORD_VARIABLE}}}",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(context.work / "schema-history"),
    }


def _kafka_clients(kafka: KafkaEndpoint) -> dict[str, str]:
    """Return the properties of the clients of a Connect worker, with placeholders for variables."""
    placeholders = {
        f"{client}{name}": f"${{env:{_variable(name)}}}"
        for name in kafka.java_properties
        for client in ("", "producer.", "admin.")
    }
    return {"bootstrap.servers": str(kafka), **placeholders}


def _variable(property_name: str) -> str:
    return KAFKA_VARIABLE + property_name.replace(".", "_").upper()


def _launch(context: Context, options: Sequence[str]) -> Launch:
    settings = context.settings
    (context.work / "plugins").mkdir(exist_ok=True)
    worker = jvm.properties(context.work / "worker.properties", worker_properties(context))
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(jvm.CONNECT_HEAP, context.work, settings),
            *jvm.for_a_small_part(),
            *options,
            f"-Dlog4j2.configurationFile={LOG4J}",
            "-cp",
            class_path(context),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            str(worker),
        ],
        env={
            PASSWORD_VARIABLE: net.mysql(settings).reader_password,
            **{_variable(name): v for name, v in net.kafka(settings).java_properties.items()},
        },
        cwd=context.work,
    )


def _validate(context: Context) -> None:
    """Let Connect validate the connector's configuration, without starting the connector."""
    _require_mysql(context.settings, "SELECT 1")
    status, _ = net.request(
        f"{url(context.settings)}/connector-plugins/{debezium_connector.CLASS}/config/validate",
        "PUT",
        {"name": _workload(context.settings).name, **connector_config(context)},
    )
    if status != 200:
        raise NotReady(f"Connect answers with HTTP {status}")


def _state(settings: Settings) -> str | None:
    """Return the state of the connector's task; None if the connector is not registered.

    Raises:
        NotReady: Connect does not answer.
        RacetrackError: the connector or its task failed; neither recovers from that.
    """
    net.require_listener(settings, settings.connect_port)
    status = connector_status(url(settings), settings.workload)
    if status and (failure := status.failure):
        raise RacetrackError(failure)
    return status.task if status else None


def _require_peers(settings: Settings) -> None:
    """Check that Debezium's peers are ready: a connector that starts without them fails forever."""
    registry.subjects(settings)
    tables = debezium_connector.full_names(settings)
    seeded = (f"EXISTS (SELECT * FROM {table})" for table in tables)  # noqa: S608  # our own names
    _require_mysql(settings, f"SELECT {' AND '.join(seeded)}")


def _workload(settings: Settings) -> Workload:
    return find_workload(settings.workload)


def _require_mysql(settings: Settings, condition: str) -> None:
    mysql = net.mysql(settings)
    net.require_listener(settings, mysql.port, mysql.host)
    try:
        with mysql.connect_reader() as connection, connection.cursor() as cursor:
            cursor.execute(condition)
            row = cursor.fetchone()
    except pymysql.MySQLError as error:
        raise NotReady(f"waiting for the tables: {words(error)}") from None
    if row != (1,):
        raise NotReady("waiting for the tables to be seeded")


def _register(context: Context) -> None:
    settings = context.settings
    connector = f"{url(settings)}/connectors/{settings.workload}"
    status, _ = net.request(connector)
    if status == 200:
        # It was registered a moment ago and has no state yet; registering it again restarts it.
        return
    status, answer = net.request(f"{connector}/config", "PUT", connector_config(context))
    if status not in (200, 201):
        raise NotReady(f"Connect refused the connector: HTTP {status} {answer.decode()[:500]}")


def url(settings: Settings) -> str:
    """Return the URL of Kafka Connect."""
    return f"http://{net.endpoint(net.host(settings), settings.connect_port)}"


def _version(folder: Path, artifact: str) -> str:
    jar = next(folder.rglob(f"{artifact}-[0-9]*.jar"))
    return jar.stem.removeprefix(f"{artifact}-")


SERVICE = Debezium()
