"""Service `postgres`: a PostgreSQL server in a private folder, run by an unprivileged user. Its
database and its database user are both named `shop`."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg

from racetrack import environment
from racetrack.config import Settings
from racetrack.engines.pg import recipe
from racetrack.engines.pg.settings import PostgresSettings
from racetrack.errors import RacetrackError
from racetrack.stack import net, prebuilt, processes
from racetrack.stack.service import Context, Launch, NotReady

USER = DATABASE = "shop"
UNPRIVILEGED = "nobody"
# If the harness runs as root, commands get this prefix, because PostgreSQL refuses to run as root.
# Every Debian has setpriv.
AS_UNPRIVILEGED = ("setpriv", f"--reuid={UNPRIVILEGED}", "--regid=nogroup", "--clear-groups", "--")
# If the harness runs as root, the installed files are copied (see `_prefix`), except these, which a
# server does not need.
NOT_COPIED = ("bitcode", "pgxs", "doc", "man", "locale", "made", "*.a")


class Postgres:
    """See `racetrack.stack.service.NativeService`."""

    name = "postgres"
    parts = ("postgres",)
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"POSTGRES_PORT": PostgresSettings.of(settings).postgres_port}

    def launch(self, context: Context) -> Launch:
        """Create an empty database, or keep that of a killed server; return the launch of
        PostgreSQL. A kill makes unlogged tables useless, so that database is created again."""
        prefix = _prefix(context)
        data = context.work / "data"
        if data.exists() and PostgresSettings.of(context.settings).postgres_unlogged:
            shutil.rmtree(data)
        if data.exists():
            # All processes of the server have ended, and another may have its process id by now.
            (data / "postmaster.pid").unlink(missing_ok=True)
        else:
            _make_data(context, prefix, data)
            _set_password(context, prefix)
            (data / "pg_hba.conf").write_text("host all all all scram-sha-256\n")
        options = [arg for item in configuration(context).items() for arg in ("-c", "=".join(item))]
        return Launch(
            argv=_command(prefix, "postgres", "-D", str(data), *options),
            env=_environment(prefix),
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """Check that the database user of the demo can log in."""
        net.require_listener(context.settings, PostgresSettings.of(context.settings).postgres_port)
        try:
            connect(context.settings).close()
        except psycopg.Error as error:
            raise NotReady(f"{USER} can't log in yet: {error}") from None

    def versions(self, context: Context) -> Mapping[str, str]:
        return {"postgres": (context.parts["postgres"] / "VERSION").read_text().strip()}


def connect(settings: Settings) -> "psycopg.Connection[tuple[object, ...]]":
    """Open a connection as the database user of the demo, in autocommit mode.

    Raises:
        psycopg.Error: PostgreSQL does not answer or refuses.
    """
    return psycopg.connect(
        host=net.host(settings),
        port=PostgresSettings.of(settings).postgres_port,
        user=USER,
        dbname=DATABASE,
        password=PostgresSettings.of(settings).postgres_password.get_secret_value(),
        connect_timeout=10,
        autocommit=True,
    )


def configuration(context: Context) -> dict[str, str]:
    """Return the settings that differ from PostgreSQL's defaults. The data is not needed after the
    run, so writes are not synchronized to disk: only a crash of the machine would lose some. JIT
    compilation is off because LLVM is not installed."""
    return {
        "listen_addresses": context.settings.bind_address,
        "port": str(PostgresSettings.of(context.settings).postgres_port),
        "unix_socket_directories": "",
        # Shared memory is in files of the data folder, so that nothing remains after a kill.
        "dynamic_shared_memory_type": "mmap",
        "shared_buffers": PostgresSettings.of(context.settings).postgres_shared_buffers,
        "fsync": "off",
        "full_page_writes": "off",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "jit": "off",
        "timezone": "GMT",  # the only time zone that needs no time zone files
        "log_timezone": "GMT",
    }


def _prefix(context: Context) -> Path:
    """Return a folder with PostgreSQL that the server's user can read. If root runs the harness,
    this is a copy in the service's own folder, since the unprivileged user can't read root's
    cache."""
    part = context.parts["postgres"]
    if os.geteuid() != 0:
        return part
    copied = context.work / "postgresql"
    if not copied.exists():
        ignored = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(part, copied, ignore=ignored, symlinks=True)
    _give_away(context.work, recursive=False)
    return copied


def _make_data(context: Context, prefix: Path, data: Path) -> None:
    """Create a data folder with a database user without a password. Copy the folder if an earlier
    run has kept one."""
    kept = prebuilt.path_in(context.parts["postgres"], "data")
    if os.access(kept, os.R_OK | os.X_OK):  # perhaps only root can read the folder
        shutil.copytree(kept, data)
        _give_away(data)
        return
    initdb = ("initdb", "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale")
    _do(context, prefix, (*initdb, "--no-sync"), "initialise its data folder")
    _single(context, prefix, f"CREATE DATABASE {DATABASE}")
    prebuilt.keep(data, kept)


def _set_password(context: Context, prefix: Path) -> None:
    secret = (
        PostgresSettings.of(context.settings)
        .postgres_password.get_secret_value()
        .replace("'", "''")
    )
    _single(context, prefix, f"ALTER ROLE {USER} PASSWORD '{secret}'")


def _single(context: Context, prefix: Path, statement: str) -> None:
    """Run a statement in PostgreSQL's single-user mode. PostgreSQL does not log the statement,
    because it may contain a secret."""
    data = str(context.work / "data")
    options = ("-c", "log_min_error_statement=panic", "-c", "timezone=GMT", "-c", "fsync=off")
    # Each input line is a statement. Without exit_on_error the exit code would be 0 after an error.
    command = ("postgres", "--single", "-D", data, *options, "-c", "exit_on_error=on", "postgres")
    _do(context, prefix, command, "prepare its database", statement.replace("\n", " ") + "\n")


def _do(context: Context, prefix: Path, command: Sequence[str], what: str, stdin: str = "") -> None:
    done = subprocess.run(
        _command(prefix, *command),
        env=environment.of_program(
            {
                **_environment(prefix),
                **processes.mark(context.settings.stack_name, "postgres"),
            }
        ),
        cwd=context.work,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RacetrackError(f"PostgreSQL could not {what}:\n{done.stderr.strip()}")


def _command(prefix: Path, program: str, *arguments: str) -> list[str]:
    become = AS_UNPRIVILEGED if os.geteuid() == 0 else ()
    return [*become, str(recipe.programs(prefix) / program), *arguments]


def _environment(prefix: Path) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": recipe.libraries(prefix), "LC_ALL": "C"}


def _give_away(folder: Path, *, recursive: bool = True) -> None:
    """If root runs the harness, make the server's unprivileged user the owner of a folder."""
    if os.geteuid() != 0:
        return
    shutil.chown(folder, UNPRIVILEGED)
    for path in folder.rglob("*") if recursive else ():
        shutil.chown(path, UNPRIVILEGED)


SERVICE = Postgres()
