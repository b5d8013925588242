"""A real PostgreSQL of the tests' own: a cluster in a temporary folder, on a loopback port."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.ports import free_ports

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
    user = _nobody()
    try:
        if user:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data, log = folder / "data", folder / "log"
        _make(programs, folder, data, user)
        (port,) = free_ports(1)
        settings = {"listen_addresses": "127.0.0.1", "port": port, "fsync": "off"}
        settings |= {"unix_socket_directories": "", "timezone": "Europe/Vienna"}
        options = [arg for name, value in settings.items() for arg in ("-c", f"{name}={value}")]
        with log.open("wb") as output:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
                user=user and user.pw_uid,
                group=user and user.pw_gid,
                extra_groups=user and [],
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


def _make(programs: Path, folder: Path, data: Path, user: pwd.struct_passwd | None) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    argv = [str(programs / "initdb"), "-D", str(data), "-U", "materialize", "-A", "scram-sha-256"]
    argv += ["--no-sync", "-E", "UTF8", "--no-locale", f"--pwfile={secret}"]
    subprocess.run(
        argv,
        check=True,
        capture_output=True,
        cwd=folder,
        user=user and user.pw_uid,
        group=user and user.pw_gid,
        extra_groups=user and [],
    )


def _nobody() -> pwd.struct_passwd | None:
    """Return the user for PostgreSQL, which refuses to run as root; None unless we are root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _wait(postgres: Postgres, server: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + START_WITHIN_S
    while True:
        try:
            first = postgres.url.replace("/materialize?", "/postgres?")
            with psycopg.connect(first, autocommit=True) as connection:
                connection.execute("CREATE DATABASE materialize")
            return
        except psycopg.OperationalError:
            message = log.read_text(errors="replace")
            assert server.poll() is None, message
            assert time.monotonic() < give_up, message
            time.sleep(0.05)
