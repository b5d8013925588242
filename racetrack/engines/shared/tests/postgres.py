"""A real PostgreSQL of the tests' own: a cluster in a temporary folder, on a loopback port."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.ports import free_ports
from tests.waiting import wait_until

PASSWORD = "not-shown-anywhere"  # only of servers that live for one test
START_WITHIN_S = 30.0


@dataclass(frozen=True)
class Postgres:
    """A running server; `pid` is its main process."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """URL with the password of the user `materialize`, who may do everything."""
        return (
            f"postgres://materialize:{PASSWORD}@127.0.0.1:{self.port}/materialize?sslmode=disable"
        )

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Return the rows of a query, using a new connection."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Create a cluster and start it; stop and remove it at the end."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[-2]))
    folder = Path(tempfile.mkdtemp(prefix="racetrack-postgres-"))
    try:
        own: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            own |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        data, log, secret = (folder / name for name in ("data", "log", "password"))
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        words = f"-D {data} -U materialize -A scram-sha-256 --no-sync -E UTF8 --no-locale"
        argv = [str(programs / "initdb"), *words.split(), f"--pwfile={secret}"]
        subprocess.run(argv, check=True, capture_output=True, **own)
        (port,) = free_ports(1)
        settings = {"listen_addresses": "127.0.0.1", "port": port, "fsync": "off"}
        settings |= {"unix_socket_directories": "", "timezone": "Europe/Vienna"}
        options = [arg for name, value in settings.items() for arg in ("-c", f"{name}={value}")]
        with log.open("wb") as output:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **own,
            )
        try:
            postgres = Postgres(port, server.pid)
            _wait(postgres, server, log)
            yield postgres
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(START_WITHIN_S)
    finally:
        shutil.rmtree(folder)


@contextmanager
def for_the_shop() -> Iterator[Postgres]:
    """Start a server with the role that a stack's own PostgreSQL has."""
    with running_postgres() as server:
        server.rows(f"CREATE ROLE shop SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        yield server


def _wait(postgres: Postgres, server: "subprocess.Popen[bytes]", log: Path) -> None:
    first = postgres.url.replace("/materialize?", "/postgres?")

    def answers() -> bool:
        assert server.poll() is None, log.read_text(errors="replace")
        with suppress(psycopg.OperationalError), psycopg.connect(first, autocommit=True) as made:
            made.execute("CREATE DATABASE materialize")
            return True
        return False

    wait_until(answers, f"PostgreSQL, whose log is {log},", START_WITHIN_S, 0.05)
