"""A real Kafka Connect for tests, behind TLS and a password, with Debezium's plugins."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from racetrack import install
from racetrack.stack import jvm, net
from racetrack.stack.services.broker import LOG4J
from tests.e2e.loadgen_stack import free_ports
from tests.secured_kafka import ADMIN, SecuredKafka, make_certificates
from tests.secured_mysql import PASSWORD as MYSQL_PASSWORD
from tests.secured_mysql import SecuredMysql
from tests.secured_proxy import proxy
from tests.secured_registry import PASSWORD as REGISTRY_PASSWORD
from tests.secured_registry import SecuredRegistry
from tests.servers import running

USER, PASSWORD = "race", 'conn"ect $secret'
STORE_PASSWORD = "authorities"
READY_WITHIN_S = 90.0


@dataclass(frozen=True)
class SecuredConnect:
    """A running Kafka Connect."""

    port: int
    behind_port: int  # without TLS and password
    folder: Path

    def settings(self) -> dict[str, str]:
        """Return the settings of a run that uses this server."""
        return {
            "CONNECT_URL": f"https://localhost:{self.port}",
            "CONNECT_USERNAME": USER,
            "CONNECT_PASSWORD_FILE": str(self.folder / "password"),
            "CONNECT_SSL_CA_LOCATION": str(self.folder / "ca.pem"),
            "CONNECT_PROPERTIES_FILE": str(self.folder / "own.properties"),
        }

    def connectors(self) -> list[str]:
        """Return the names of the connectors."""
        found: Any = net.get_json(f"{self._url}/connectors")
        return list(found)

    def config(self, connector: str) -> dict[str, str]:
        """Return a connector's configuration."""
        found: Any = net.get_json(f"{self._url}/connectors/{connector}/config")
        return dict(found)

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.behind_port}"


@contextmanager
def secured_connect(
    folder: Path, kafka: SecuredKafka, registry: SecuredRegistry, mysql: SecuredMysql
) -> Iterator[SecuredConnect]:
    """Start Kafka Connect, which trusts the certificates of the three services; stop it at the
    end."""
    parts = install.ensure(["kafka", "debezium"], install.read_versions(), print)
    port, behind_port = free_ports(2)
    make_certificates(folder)
    (folder / "password").write_text(f"{PASSWORD}\n")
    _write_secrets(folder)
    trusted = _trust(folder, registry.folder / "ca.pem", mysql.folder / "ca.pem")
    worker = jvm.properties(
        folder / "worker.properties", _worker(folder, kafka, parts["debezium"], behind_port)
    )
    commands = [
        [
            str(jvm.java()),
            "-Xmx384m",
            f"-Dlog4j2.configurationFile={LOG4J}",
            f"-Djavax.net.ssl.trustStore={trusted}",
            f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
            "-cp",
            jvm.class_path(parts["kafka"] / "libs"),
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(worker),
        ],
        proxy(folder, port, behind_port, USER, PASSWORD),
    ]
    connect = SecuredConnect(port, behind_port, folder)
    with running(commands, folder, lambda: connect.connectors() is not None, READY_WITHIN_S):
        yield connect


def _worker(folder: Path, kafka: SecuredKafka, debezium: Path, port: int) -> dict[str, str]:
    topics = ("config", "offset", "status")
    json = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": kafka.address(ADMIN),
        "group.id": "__connect",
        **{f"{each}.storage.topic": f"__connect_{each}" for each in topics},
        **{f"{each}.storage.replication.factor": "1" for each in topics},
        **{f"{each}.storage.partitions": "1" for each in topics if each != "config"},
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.path": str(debezium / "plugins"),
        "key.converter": json,
        "value.converter": json,
        "offset.flush.interval.ms": "1000",
        "config.providers": "file",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
        "config.providers.file.param.allowed.paths": str(folder),
    }


def _write_secrets(folder: Path) -> None:
    """Write the passwords, and a connector's properties that refer to them."""
    passwords = {"mysql": MYSQL_PASSWORD, "registry": REGISTRY_PASSWORD}
    secrets = jvm.properties(folder / "secrets", passwords)
    reference = {name: f"${{file:{secrets}:{name}}}" for name in passwords}
    (folder / "own.properties").write_text(
        f"database.password={reference['mysql']}\n"
        f"key.converter.apicurio.auth.password={reference['registry']}\n"
        f"value.converter.apicurio.auth.password={reference['registry']}\n"
    )


def _trust(folder: Path, *authorities: Path) -> Path:
    """Return a file with these authorities' certificates in Java's format."""
    store = folder / "authorities.p12"
    keytool = [str(jvm.java().with_name("keytool")), "-importcert", "-noprompt"]
    keytool += ["-keystore", str(store), "-storepass", STORE_PASSWORD]
    for number, file in enumerate(authorities):
        command = [*keytool, "-alias", str(number), "-file", str(file)]
        subprocess.run(command, check=True, capture_output=True)
    return store
