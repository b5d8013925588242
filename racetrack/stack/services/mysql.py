"""MySQL, unpacked into a folder of its own, with an unprivileged user and a row-based binlog."""

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
from racetrack.mysql_endpoint import words
from racetrack.stack import net, prebuilt, processes
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.workloads.contract import find_workload

UNPRIVILEGED = "nobody"
SOCKET = "mysql.sock"
END_WITHIN_S = 2
# Maximum length of the path of a Unix socket.
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
        # A killed server leaves its lock file, which contains its process id. While that process is
        # a zombie, a new server would assume that the socket is in use.
        (context.work / f"{SOCKET}.lock").unlink(missing_ok=True)
        users = _users_file(context)
        users.touch(mode=0o600)
        users.write_text("".join(f"{statement};\n" for statement in users_sql(context.settings)))
        _give_away(context.work)
        return Launch(
            argv=[
                # `timeout` kills mysqld, which would otherwise wait 8 s for binlog readers before
                # it exits, even if there are none.
                "timeout",
                "--foreground",
                f"--kill-after={END_WITHIN_S}",
                "0",
                *_server(context, "--innodb-fast-shutdown=2", f"--init-file={users}"),
            ],
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        net.require_listener(context.settings, context.settings.mysql_port)
        try:
            mysql = net.mysql(context.settings)
            mysql.connect().close()
        except pymysql.MySQLError as error:
            raise NotReady(f"{mysql.writer} can't log in yet: {words(error)}") from None
        # The server has read the file, so remove the passwords.
        _users_file(context).unlink(missing_ok=True)

    def versions(self, context: Context) -> Mapping[str, str]:
        return {"mysql": (context.parts["mysql"] / "VERSION").read_text().strip()}


def users_sql(settings: Settings) -> list[str]:
    """Return the SQL statements that create the users. They contain passwords in plain text."""
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
        # Keep the following statements out of the binlog: they are not workload data.
        "SET SESSION sql_log_bin = 0",
        f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{root}'",
        f"CREATE DATABASE IF NOT EXISTS {name}",
        f"CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED BY '{own}'",
        f"GRANT ALL ON {name}.* TO '{name}'@'%'",
        f"CREATE USER IF NOT EXISTS 'debezium'@'%' IDENTIFIED BY '{debezium}'",
        f"GRANT {DEBEZIUM_RIGHTS} ON *.* TO 'debezium'@'%'",
    ]


def configuration(context: Context) -> dict[str, str]:
    """Return the `[mysqld]` section. It disables syncing to disk: data is removed after a run."""
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
    # Copy the one plugin that the server always loads: after dropping root privileges, the server
    # may be unable to read the folder in which MySQL is installed.
    plugins = context.parts["mysql"] / "usr/lib/mysql/plugin"
    shutil.copy(plugins / "component_reference_cache.so", context.work / "plugin")
    lines = [f"{key}={value}\n" for key, value in configuration(context).items()]
    (context.work / "my.cnf").write_text("[mysqld]\n" + "".join(lines))


def _make_data(context: Context) -> None:
    """Initialise the data folder, without passwords, or copy a folder that was initialised earlier.

    Keep an existing folder, which a killed server left.
    """
    kept = prebuilt.path_in(context.parts["mysql"], "data")
    data = context.work / "data"
    if data.exists():
        return
    if os.access(kept, os.R_OK | os.X_OK):  # perhaps only root can read the folder
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
    # This file contains the server's id; every run creates a new one.
    (data / "auto.cnf").unlink()
    prebuilt.keep(data, kept)


def _server(context: Context, *options: str) -> list[str]:
    """Return the mysqld command. It uses the unpacked loader and libraries, not the machine's."""
    return [
        *own_loader(context.parts["mysql"], "usr/sbin/mysqld", *MYSQL_LIBRARIES),
        f"--defaults-file={context.work / 'my.cnf'}",
        *options,
    ]


def _give_away(work: Path) -> None:
    """If this process runs as root, give the folder to the user to which mysqld switches."""
    if os.geteuid() != 0:
        return
    shutil.chown(work, UNPRIVILEGED)
    for path in work.rglob("*"):
        shutil.chown(path, UNPRIVILEGED)


def _users_file(context: Context) -> Path:
    return context.work / "users.sql"


SERVICE = Mysql()
