"""A real Deephaven for tests of a server that the user provides. It has TLS and a key, but none of
the files, variables and addresses that a stack gives to its own Deephaven."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydeephaven import Session

from racetrack import install
from racetrack.config import load
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.services import deephaven as service
from racetrack.stack import jvm
from tests.ports import free_ports
from tests.secured_kafka import make_certificates
from tests.servers import LOG, running

KEY = "not-shown-anywhere"
HANDLER = "io.deephaven.authentication.psk.PskAuthenticationHandler"
READY_WITHIN_S = 120.0
THREADS = """
import jpy
from deephaven import new_table
from deephaven.column import string_col
threads = jpy.get_type("java.lang.Thread").getAllStackTraces().keySet().toArray()
{name} = new_table([string_col("name", [thread.getName() for thread in threads])])
"""


@dataclass(frozen=True)
class Brought:
    """A running server."""

    port: int
    folder: Path
    pid: int

    def settings(self) -> dict[str, str]:
        """Return the settings of a run that uses this server."""
        return {
            "DEEPHAVEN_URL": f"https://localhost:{self.port}",
            "DEEPHAVEN_PSK_FILE": str(self.folder / "key"),
            "DEEPHAVEN_SSL_CA_LOCATION": str(self.folder / "ca.pem"),
        }

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session as the owner of the server."""
        session = Session(
            host="localhost",
            port=self.port,
            auth_type=HANDLER,
            auth_token=KEY,
            use_tls=True,
            tls_root_certs=(self.folder / "ca.pem").read_bytes(),
        )
        try:
            yield session
        finally:
            session.close()

    def names(self) -> set[str]:
        """Return the names of all tables."""
        with self.session() as session:
            return set(session.tables)

    def kafka_threads(self) -> list[str]:
        """Return the names of the threads that read from Kafka or write to it."""
        with self.session() as session:
            session.run_script(THREADS.format(name="owners_threads"))
            rows = session.open_table("owners_threads").to_arrow()
            session.run_script("del owners_threads, threads")
        found: Sequence[str] = rows.column("name").to_pylist()
        return sorted(name for name in found if "kafka" in name.lower())

    def log(self) -> str:
        """Return the server's output until now."""
        return log_of(self.folder)


def log_of(folder: Path) -> str:
    return (folder / LOG).read_text(errors="replace")


@contextmanager
def brought() -> Iterator[Brought]:
    """Start the server; stop and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="racetrack-deephaven-") as name:
        folder = Path(name)
        make_certificates(folder)
        (folder / "key").write_text(f"{KEY}\n")
        (folder / "key").chmod(0o600)
        (port,) = free_ports(1)
        version = load().model_dump()["deephaven_version"]
        parts = install.ensure(["deephaven"], {"DEEPHAVEN_VERSION": version}, print)
        properties = {
            "ssl.identity.type": "privatekey",
            "ssl.identity.certChainPath": folder / "broker.pem",
            "ssl.identity.privateKeyPath": folder / "broker.key",
            # Time until the tables of a killed client are released; 300,000 by default.
            "http.session.durationMs": 30_000,
        }
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "JAVA_HOME": str(jvm.java().parent.parent),
            "DEEPHAVEN_HOST": "127.0.0.1",
            "DEEPHAVEN_PORT": str(port),
            "DEEPHAVEN_HEAP": "2g",
            "DEEPHAVEN_CYCLE_MS": "1000",
            "DEEPHAVEN_PSK": KEY,
            "DEEPHAVEN_DATA": str(folder / "data"),
            "DEEPHAVEN_JVM_ARGS": " ".join(f"-D{key}={value}" for key, value in properties.items()),
            "RACETRACK_SCRIPTS": str(folder),
        }
        command = [parts["deephaven"] / "bin/python", service.LAUNCHER]

        def is_ready() -> bool:
            return "RACETRACK ready" in log_of(folder)

        with running([command], folder, is_ready, READY_WITHIN_S, variables) as (pid,):
            yield Brought(port, folder, pid)


def load_there(
    server: Brought,
    scripts: Mapping[str, str],
    environment: Mapping[str, object] | None = None,
    addresses: Sequence[str] = (),
) -> None:
    """Load scripts as a run does, with these variables and addresses."""
    given = {
        "addresses": addresses,
        "environment": environment or {},
        "scripts": scripts,
    }
    with server.session() as session:
        ELSEWHERE.load(session, given)
