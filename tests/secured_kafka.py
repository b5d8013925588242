"""A real Kafka for tests, as in a company: TLS, passwords, and rights for each user.

`python -m tests.secured_kafka [--certificate] [ADDRESS]` starts it at an address of this machine,
and prints the settings for a run that uses it, with a password or a certificate.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from racetrack import install
from racetrack.stack import jvm
from tests.ports import free_ports
from tests.servers import print_settings, running
from tests.waiting import wait_until

USER, PASSWORD, PREFIX = "race", 'a "secret" \\ word', "race_1."
SASL_SSL, SSL, ADMIN, CONTROLLER = "SASLSSL", "MUTUAL", "ADMIN", "CONTROLLER"
# Clients connect to FAR through a relay that a test runs at the port RELAY, which FAR advertises.
FAR, RELAY = "FAR", "RELAY"
TOOL, CLUSTER = "kafka.tools.StorageTool", "r4cetr4ckr4cetr4ckr4cQ"


# The rights of the user USER on resources whose names begin with PREFIX that a run needs, as in
# docs/own-parts.md.
RIGHTS = {
    f"{kind.name}.{operation}": AclBinding(
        kind,
        PREFIX,
        ResourcePatternType.PREFIXED,
        f"User:{USER}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )
    for kind, operations in {
        ResourceType.TOPIC: ("CREATE", "WRITE", "READ", "DELETE", "DESCRIBE_CONFIGS"),
        ResourceType.GROUP: ("READ", "DELETE"),
    }.items()
    for operation in operations
}


def client_properties(file: Path, properties: Mapping[str, str]) -> str:
    """Write properties of Kafka's clients into a file that only its user may read; return its
    path."""
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    file.chmod(0o600)
    return str(file)


@dataclass(frozen=True)
class SecuredKafka:
    """A running Kafka."""

    ports: Mapping[str, int]
    folder: Path
    host: str

    def address(self, listener: str) -> str:
        return f"{self.host}:{self.ports[listener]}"

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient({"bootstrap.servers": self.address(ADMIN), "log_level": 0})

    def topics(self) -> set[str]:
        """Return the names of all topics but Kafka's own."""
        found = self.admin.list_topics(timeout=10).topics
        return {name for name in found if not name.startswith("__")}

    def settings(self, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
        """Return the settings of a run whose user has a password."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.address(SASL_SSL),
            "KAFKA_TOPIC_PREFIX": PREFIX,
            "KAFKA_CLIENT_PROPERTIES": self.client_properties(mechanism),
        }

    def client_properties(self, mechanism: str = "SCRAM-SHA-256", **changed: str) -> str:
        """Return the path of a file with the properties of the user's clients. In names of
        `changed`, `_` stands for a full stop."""
        return client_properties(
            self.folder / f"{mechanism}{'-'.join(changed)}.properties",
            {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": "ca.pem",
                "sasl.mechanism": mechanism,
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                **{name.replace("_", "."): value for name, value in changed.items()},
            },
        )

    def settings_with_certificate(self) -> dict[str, str]:
        """Return the settings of a run whose user has a certificate."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.address(SSL),
            "KAFKA_TOPIC_PREFIX": PREFIX,
            "KAFKA_CLIENT_PROPERTIES": client_properties(
                self.folder / "certificate.properties",
                {
                    "security.protocol": "SSL",
                    "ssl.ca.location": "ca.pem",
                    "ssl.certificate.location": "client.pem",
                    "ssl.key.location": "client.key",
                },
            ),
        }

    def settings_over_relay(self) -> dict[str, str]:
        """Return the settings of a run that connects through a relay, and may do everything."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.address(RELAY),
            "KAFKA_TOPIC_PREFIX": PREFIX,
        }

    def allow(self, rights: Mapping[str, AclBinding]) -> None:
        """Give the user these rights and no others."""
        admin = self.admin
        anyone: Any = None  # Kafka accepts None; confluent-kafka's type does not
        every = AclBindingFilter(
            ResourceType.ANY,
            anyone,
            ResourcePatternType.ANY,
            anyone,
            anyone,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for removed in admin.delete_acls([every]).values():
            removed.result(10)
        for made in admin.create_acls([*rights.values()]).values():
            made.result(10)
        wait_until(lambda: len(admin.describe_acls(every).result(10)) == len(rights), "rights")


@contextmanager
def secured_kafka(folder: Path, host: str = "localhost") -> Iterator[SecuredKafka]:
    """Start Kafka with all RIGHTS granted; stop it at the end."""
    names = (SASL_SSL, SSL, ADMIN, CONTROLLER, FAR, RELAY)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    part = install.ensure(["kafka"], install.read_versions(), print)["kafka"]
    make_certificates(folder, host)
    jvm.properties(folder / "server.properties", _properties(folder, ports, host))
    java = [str(jvm.java()), "-Xmx256m", *jvm.only_warnings()]
    java += ["-cp", jvm.class_path(part / "libs")]
    subprocess.run(
        [*java, TOOL, "format", "-t", CLUSTER, "-c", str(folder / "server.properties")],
        check=True,
        capture_output=True,
    )
    command = [*java, "kafka.Kafka", str(folder / "server.properties")]
    kafka = SecuredKafka(ports, folder, host)

    def answers() -> bool:
        return bool(kafka.admin.list_topics(timeout=2))

    with running([command], folder, answers, not_ready=KafkaException):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            password = ScramCredentialInfo(mechanism, 4096)
            change = UserScramCredentialUpsertion(USER, password, PASSWORD.encode())
            for done in kafka.admin.alter_user_scram_credentials([change]).values():
                done.result(10)
        kafka.allow(RIGHTS)
        yield kafka


def _properties(folder: Path, ports: Mapping[str, int], host: str) -> dict[str, str]:
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    plain = f'required user_{USER}="{quoted}";'
    security = "org.apache.kafka.common.security"
    scram = f"{security}.scram.ScramLoginModule required;"
    listener = f"listener.name.{SASL_SSL.lower()}"
    open_to_all = dict.fromkeys((ADMIN, CONTROLLER, FAR), "PLAINTEXT")
    protocols = {SASL_SSL: "SASL_SSL", SSL: "SSL", **open_to_all}
    advertised = {**{name: ports[name] for name in protocols}, FAR: ports[RELAY]}
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{host}:{ports[CONTROLLER]}",
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join(f"{name}://{host}:{ports[name]}" for name in protocols),
        "advertised.listeners": ",".join(
            f"{name}://{host}:{port}" for name, port in advertised.items()
        ),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
        "inter.broker.listener.name": ADMIN,
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(9 << 20),
        "replica.fetch.max.bytes": str(9 << 20),
        "log.retention.ms": "-1",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),  # by default half of the heap
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{listener}.plain.sasl.jaas.config": f"{security}.plain.PlainLoginModule {plain}",
        f"{listener}.scram-sha-256.sasl.jaas.config": scram,
        f"{listener}.scram-sha-512.sasl.jaas.config": scram,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.both"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        f"listener.name.{SSL.lower()}.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+).*$/$1/,DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def make_certificates(folder: Path, host: str = "localhost") -> None:
    """Make a certificate authority (`ca.pem`), and for broker and client each a certificate
    (`.pem`) and its key (`.key`)."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "rsa:2048", "-nodes", "-sha256", "-days", "2")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests")
    for name, subject in (("broker", "localhost"), ("client", USER)):
        request = ("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={subject}")
        openssl("req", "-newkey", "rsa:2048", "-nodes", *request)
        address = "127.0.0.1" if host == "localhost" else host
        (folder / "names").write_text(f"subjectAltName=DNS:localhost,IP:{address}\n")
        signed = f"-in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names"
        openssl("x509", "-req", *signed.split(), "-days", "2", "-sha256", "-out", f"{name}.pem")
    both = (folder / "broker.key").read_text() + (folder / "broker.pem").read_text()
    (folder / "broker.both").write_text(both)


def main() -> None:
    """Start Kafka, print the settings, and stop it when the input ends."""
    options = sys.argv[1:]
    has_certificate = "--certificate" in options
    host = next((each for each in options if not each.startswith("-")), "localhost")
    with tempfile.TemporaryDirectory() as name, secured_kafka(Path(name), host) as kafka:
        print_settings(kafka.settings_with_certificate() if has_certificate else kafka.settings())


if __name__ == "__main__":
    main()
