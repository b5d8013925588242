"""The brokers: Apache Kafka. The first is also the controller; only Kubernetes has several."""

import base64
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from racetrack import environment
from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.stack import jvm, net, prebuilt, processes
from racetrack.stack.prebuilt import Archive, training
from racetrack.stack.service import Context, Launch, NotReady

LOG4J = Path(__file__).with_name("log4j2.properties")
ANSWER_S = 2.0
# Allows messages of 8 MiB and the header of their batch.
MESSAGE_MAX_BYTES = 9 << 20
OUTSIDE_PORT = 19092  # the port in Redpanda's examples


class Broker:
    """Kafka as a native service."""

    name = "broker"
    parts = ("kafka",)
    after = ()
    ready_within_s = 60.0

    def __init__(
        self, open_admin: Callable[[dict[str, str | int | float | bool]], AdminClient] = AdminClient
    ) -> None:
        """Check readiness with the admin client that `open_admin` creates."""
        self._open_admin = open_admin

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {
            "KAFKA_PORT": settings.kafka_port,
            "KAFKA_CONTROLLER_PORT": settings.kafka_controller_port,
        }

    def launch(self, context: Context) -> Launch:
        archive = Archive(
            self.name,
            "kafka",
            class_path(context),
            training(_launch),
            self._trained,
            ports=("kafka_port", "kafka_controller_port"),
        )
        return replace(_launch(context, archive.option(context)), faster=archive)

    def check(self, context: Context) -> None:
        net.require_listener(context.settings, context.settings.kafka_port)
        quiet: dict[str, str | int | float | bool] = {
            "log_level": 0,
            "bootstrap.servers": str(net.kafka(context.settings)),
        }
        try:
            # The metadata contains the leaders, and the cluster id, which shows whether this is the
            # run's own broker.
            metadata = self._open_admin(quiet).list_topics(timeout=ANSWER_S)
        except KafkaException as error:
            raise NotReady(f"no metadata within {ANSWER_S:.0f} s: {error.args[0].str()}") from None
        if metadata.cluster_id != (expected := cluster_id_file(context).read_text()):
            raise RacetrackError(
                f"Port {context.settings.kafka_port} is answered by another Kafka cluster"
                f" ({metadata.cluster_id}, not {expected}). Stop it, or set KAFKA_PORT to a free"
                " port."
            )
        # Topics that are created earlier would have no partition on the missing brokers.
        if (there := len(metadata.brokers)) < (wanted := context.settings.broker_replicas):
            raise NotReady(f"{there} of {wanted} brokers have registered")
        # A restarted broker answers before it has become the leader of its partitions.
        leaderless = [
            f"{name}/{number}"
            for name, topic in metadata.topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader < 0
        ]
        if leaderless:
            raise NotReady(f"partitions without a leader: {', '.join(leaderless)}")

    def _trained(self, context: Context) -> None:
        """Write a record and read it back."""
        self.check(context)
        where: dict[str, str | int | float | bool] = {
            "bootstrap.servers": str(net.kafka(context.settings)),
            "log_level": 0,
        }
        topic = "training"
        AdminClient(where).create_topics([NewTopic(topic, 1, 1)])[topic].exception(ANSWER_S)
        producer = Producer({**where, "acks": "all"})
        producer.produce(topic, b"record")
        producer.flush(ANSWER_S)
        consumer = Consumer({**where, "group.id": topic, "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([topic])
            if not consumer.poll(ANSWER_S):
                raise NotReady("no record was read")
        finally:
            consumer.close()

    def versions(self, context: Context) -> Mapping[str, str]:
        jar = next((context.parts["kafka"] / "libs").glob("kafka_*.jar"))
        return {"kafka": jar.stem.split("-", 1)[1], "java": jvm.java_version()}


def class_path(context: Context) -> str:
    """Return Kafka's jars as a class path."""
    return jvm.class_path(context.parts["kafka"] / "libs")


def cluster_id_file(context: Context) -> Path:
    """Return the path of the file that contains the cluster id of this run."""
    return context.work / "cluster.id"


@dataclass(frozen=True)
class Place:
    """Place of a broker in its cluster, from the name of its pod (`redpanda-0`). The other brokers
    also use that name as its host name. The name is empty if there is only one broker."""

    pod: str

    @property
    def _parts(self) -> tuple[str, str]:
        name, _, number = self.pod.rpartition("-")
        return name, number

    @property
    def number(self) -> int:
        """Number of the broker, from 0."""
        return int(self._parts[1] or 0)

    @property
    def first(self) -> str:
        """Host name of the first broker, the controller."""
        return f"{self._parts[0]}-0" if self.pod else ""

    def new_cluster_id(self) -> str:
        """Return an id for the cluster. It is the same in all pods of the cluster."""
        return _text(uuid.uuid5(uuid.NAMESPACE_DNS, self.first)) if self.pod else _new_id()


def server_properties(context: Context) -> dict[str, str]:
    """Return the broker's settings that differ from Kafka's defaults."""
    settings = context.settings
    place = Place(settings.racetrack_instance)
    is_controller = place.number == 0
    controller_port = settings.kafka_controller_port
    reached = net.endpoint(place.first or net.host(settings), controller_port)
    listeners = {"CLIENT": net.endpoint(settings.bind_address, settings.kafka_port)}
    if is_controller:
        listeners["CONTROLLER"] = net.endpoint(settings.bind_address, controller_port)
    advertised = {"CLIENT": str(net.kafka(settings))}
    if place.pod:
        advertised["CLIENT"] = net.endpoint(place.pod, settings.kafka_port)
    if settings.kafka_advertised_address:
        address = settings.kafka_advertised_address
        advertised["CLIENT"] = net.endpoint(address, settings.kafka_port)
    if settings.kafka_outside:
        # In a container: clients inside and outside of containers need different addresses.
        listeners["OUTSIDE"] = net.endpoint(settings.bind_address, OUTSIDE_PORT)
        advertised["OUTSIDE"] = settings.kafka_outside.split(",")[place.number]
    protocols = dict.fromkeys([*listeners, "CONTROLLER"], "PLAINTEXT")
    stored_once = {
        f"{name}.replication.factor": "1"
        for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    }
    was_killed = (context.work / "data").exists()
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": str(place.number + 1),
        "controller.quorum.voters": f"1@{reached}",
        "controller.listener.names": "CONTROLLER",
        # Wait this long for the controller, whose pod may start later.
        "initial.broker.registration.timeout.ms": "180000",
        "listeners": _listed(listeners, "://"),
        "advertised.listeners": _listed(advertised, "://"),
        "listener.security.protocol.map": _listed(protocols, ":"),
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": str(context.work / "data"),
        **stored_once,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # Report a misspelt topic name as an error instead of creating the topic.
        "auto.create.topics.enable": "false",
        # A broker that is paused for longer than its session drops messages sent with acks=0, so a
        # session is long. After a kill it is short, because a killed broker can register again only
        # when its session is over.
        "broker.session.timeout.ms": "9000" if was_killed else "60000",
        # Engines replay from the beginning, so keep data for as long as possible.
        "log.retention.ms": "-1",
        "log.retention.bytes": str(settings.kafka_retention_bytes),
        "log.segment.bytes": str(64 << 20),
        "log.retention.check.interval.ms": "5000",
        "message.max.bytes": str(MESSAGE_MAX_BYTES),
        "replica.fetch.max.bytes": str(MESSAGE_MAX_BYTES),
    }


def _listed(by_listener: Mapping[str, str], between: str) -> str:
    return ",".join(f"{name}{between}{value}" for name, value in by_listener.items())


def _launch(context: Context, options: Sequence[str]) -> Launch:
    configuration = jvm.properties(context.work / "server.properties", server_properties(context))
    if not (context.work / "data").exists():  # it exists if a killed broker is started again
        _format(context, configuration)
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(context.settings.kafka_heap, context.work, context.settings),
            *options,
            f"-Dlog4j2.configurationFile={LOG4J}",
            "-cp",
            class_path(context),
            "kafka.Kafka",
            str(configuration),
        ],
        cwd=context.work,
    )


def _format(context: Context, configuration: Path) -> None:
    """Format the data folder, with the result of `kafka.tools.StorageTool format`.

    The tool runs only the first time. Later, its result is copied, which is faster because it
    starts no JVM; only the ids have to be new.
    """
    data, place = context.work / "data", Place(context.settings.racetrack_instance)
    kept = prebuilt.path_in(context.parts["kafka"], "bootstrap.checkpoint")
    cluster_id, directory_id = place.new_cluster_id(), _new_id()
    cluster_id_file(context).write_text(cluster_id)
    if not kept.exists():
        _format_with_java(context, configuration, cluster_id)
        prebuilt.keep(data / "bootstrap.checkpoint", kept)
        return
    data.mkdir()
    shutil.copyfile(kept, data / "bootstrap.checkpoint")
    (data / "meta.properties").write_text(
        f"version=1\nnode.id={place.number + 1}\n"
        f"cluster.id={cluster_id}\ndirectory.id={directory_id}\n"
    )


def _format_with_java(context: Context, configuration: Path, cluster_id: str) -> None:
    tool = [str(jvm.java()), "-cp", class_path(context), "kafka.tools.StorageTool", "format"]
    done = subprocess.run(
        [*tool, "-t", cluster_id, "-c", str(configuration)],
        env=environment.of_program(processes.mark(context.settings.stack_name, "broker")),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RacetrackError(f"Kafka could not format its data folder:\n{done.stderr.strip()}")


def _new_id() -> str:
    """Return 16 random bytes in unpadded base64url.

    The text does not begin with `-`, because tools would interpret it as an option.
    """
    while True:
        text = _text(uuid.uuid4())
        if not text.startswith("-"):
            return text


def _text(id_: uuid.UUID) -> str:
    """Return an id in unpadded base64url, as Kafka writes it."""
    return base64.urlsafe_b64encode(id_.bytes).decode().rstrip("=")


SERVICE = Broker()
