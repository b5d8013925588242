"""MySQL in a private prefix, as an unprivileged user, with a row binlog."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pymysql

from racetrack import environment
from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.install.apt import own_loader
from racetrack.install.debian import MYSQL_LIBRARIES
from racetrack.stack import net, prebuilt, processes
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.workloads.contract import find_workload

UNPRIVILEGED = "nobody"
SOCKET = "mysql.sock"
END_WITHIN_S = 2
# The longest path of a Unix socket.
SOCKET_PATH_BYTES = 107
DEBEZIUM_RIGHTS = (
    "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"
)


class Mysql:
    """MySQL as a native service."""

    name = "mysql"
    parts = ("mysql",)
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"MYSQL_PORT": settings.mysql_port}

    def launch(self, context: Context) -> Launch:
        _write_configuration(context)
        _make_data(context)
        # A killed server leaves its lock. It names a process that may stay a zombie for a while,
        # and a new server would assume that it uses the socket.
        (context.work / f"{SOCKET}.lock").unlink(missing_ok=True)
        users = _users_file(context)
        users.touch(mode=0o600)
        users.write_text("".join(f"{statement};\n" for statement in users_sql(context.settings)))
        _give_away(context.work)
        return Launch(
            argv=[
                # mysqld would wait 8 s at its end for binlog readers, though none is left.
                *("timeout", "--foreground", f"--kill-after={END_WITHIN_S}", "0"),
                *_server(context, "--innodb-fast-shutdown=2", f"--init-file={users}"),
            ],
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        net.require_listener(context.settings, context.settings.mysql_port)
        try:
            workload = find_workload(context.settings.workload)
            connect(context.settings, workload.database, workload.database).close()
        except pymysql.MySQLError as error:
            raise NotReady(f"{workload.database} can't log in yet: {words(error)}") from None
        # The server has read the passwords; remove them.
        _users_file(context).unlink(missing_ok=True)

    def versions(self, context: Context) -> Mapping[str, str]:
        return {"mysql": (context.parts["mysql"] / "VERSION").read_text().strip()}


def connect(settings: Settings, user: str, database: str | None = None) -> "pymysql.Connection":
    """Connect as the user of the workload's database, which has the same name, or as `debezium`.

    Raises:
        pymysql.MySQLError: MySQL does not answer or refuses.
    """
    secret = (
        settings.mysql_debezium_password if user == "debezium" else settings.mysql_shop_password
    )
    return pymysql.connect(
        host=net.mysql_host(settings),
        port=settings.mysql_port,
        user=user,
        password=secret.get_secret_value(),
        database=database,
        connect_timeout=2,
    )


def words(error: pymysql.MySQLError) -> str:
    """Return MySQL's message of an error, without its number."""
    return str(error.args[-1]) if error.args else type(error).__name__


def users_sql(settings: Settings) -> list[str]:
    """Return the statements that create the users, the only place with plain passwords."""
    name = find_workload(settings.workload).database
    root, own, debezium = (
        pymysql.converters.escape_string(secret.get_secret_value())
        for secret in (
            settings.mysql_root_password,
            settings.mysql_shop_password,
            settings.mysql_debezium_password,
        )
    )
    return [
        # Keep what follows out of the binlog: it is not workload data.
        "SET SESSION sql_log_bin = 0",
        f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{root}'",
        f"CREATE DATABASE IF NOT EXISTS {name}",
        f"CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED BY '{own}'",
        f"GRANT ALL ON {name}.* TO '{name}'@'%'",
        f"CREATE USER IF NOT EXISTS 'debezium'@'%' IDENTIFIED BY '{debezium}'",
        f"GRANT {DEBEZIUM_RIGHTS} ON *.* TO 'debezium'@'%'",
    ]


def configuration(context: Context) -> dict[str, str]:
    """Return the `[mysqld]` section. Nothing is synced, since the data is removed after the run."""
    prefix, work = context.parts["mysql"] / "usr", context.work
    socket_path = work / SOCKET
    if len(os.fsencode(socket_path)) > SOCKET_PATH_BYTES:
        raise RacetrackError(
            f"MySQL can't listen on {socket_path}: a socket's path has {SOCKET_PATH_BYTES} bytes at"
            " most. Choose a shorter STACK_NAME or TMPDIR."
        )
    return {
        **({"user": UNPRIVILEGED} if os.geteuid() == 0 else {}),
        "basedir": str(prefix),
        "lc-messages-dir": str(prefix / "share/mysql"),
        "character-sets-dir": str(prefix / "share/mysql/charsets"),
        "plugin-dir": str(work / "plugin"),
        "datadir": str(work / "data"),
        "tmpdir": str(work / "tmp"),
        "socket": str(socket_path),
        "pid-file": str(work / "mysqld.pid"),
        "bind-address": context.settings.bind_address,
        "port": str(context.settings.mysql_port),
        "mysqlx": "OFF",
        "secure-file-priv": "NULL",
        "skip-name-resolve": "ON",
        "max-allowed-packet": "64M",
        "default-time-zone": "+00:00",
        "server-id": "1",
        "log-bin": "binlog",
        "gtid-mode": "ON",
        "enforce-gtid-consistency": "ON",
        "sync-binlog": "0",
        "innodb-flush-log-at-trx-commit": "2",
        "innodb-doublewrite": "OFF",
        "innodb-redo-log-capacity": "32M",
        "performance-schema": "OFF",
    }


def _write_configuration(context: Context) -> None:
    for folder in ("plugin", "tmp"):
        (context.work / folder).mkdir(exist_ok=True)
    # Copy the one plugin that the server always loads: once it has dropped root, it may be unable
    # to read the part's folder.
    plugins = context.parts["mysql"] / "usr/lib/mysql/plugin"
    shutil.copy(plugins / "component_reference_cache.so", context.work / "plugin")
    lines = [f"{key}={value}\n" for key, value in configuration(context).items()]
    (context.work / "my.cnf").write_text("[mysqld]\n" + "".join(lines))


def _make_data(context: Context) -> None:
    """Initialise the data folder without any password, or copy one made before; keep one that a
    killed server left."""
    kept = prebuilt.path_in(context.parts["mysql"], "data")
    data = context.work / "data"
    if data.exists():
        return
    if os.access(kept, os.R_OK | os.X_OK):  # root may have made it for itself
        shutil.copytree(kept, data)
        return
    _give_away(context.work)
    done = subprocess.run(
        _server(context, "--initialize-insecure"),
        env=environment.of_program(processes.mark(context.settings.stack_name, "mysql")),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RacetrackError(f"MySQL could not initialise its data folder:\n{done.stderr.strip()}")
    # The server's id: every run makes its own.
    (data / "auto.cnf").unlink()
    prebuilt.keep(data, kept)


def _server(context: Context, *options: str) -> list[str]:
    """Return the mysqld command with its own libraries and loader, independent of the machine's."""
    return [
        *own_loader(context.parts["mysql"], "usr/sbin/mysqld", *MYSQL_LIBRARIES),
        f"--defaults-file={context.work / 'my.cnf'}",
        *options,
    ]


def _give_away(work: Path) -> None:
    """Give the whole folder to the user that mysqld becomes, if root starts it."""
    if os.geteuid() != 0:
        return
    shutil.chown(work, UNPRIVILEGED)
    for path in work.rglob("*"):
        shutil.chown(path, UNPRIVILEGED)


def _users_file(context: Context) -> Path:
    return context.work / "users.sql"


SERVICE = Mysql()
