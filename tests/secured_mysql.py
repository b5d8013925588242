"""A real MySQL for tests, as in a company: TLS, a user with few rights, another time zone.

`python -m tests.secured_mysql` starts it, and prints the settings for a run that uses it.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pymysql

from racetrack import install
from racetrack.config import load
from racetrack.stack.service import Context, find_service
from tests.e2e.loadgen_stack import free_ports
from tests.secured_kafka import make_certificates
from tests.servers import print_settings, running

USER, PASSWORD, ROOT = "race", 'my"sql \\ $secret', "root's"
# The rights that a run needs, as in docs/own-parts.md.
RIGHTS = (
    r"ALL ON `racetrack\_%`.*",
    "RELOAD ON *.*",
    "REPLICATION CLIENT ON *.*",
    "REPLICATION SLAVE ON *.*",
)
FILES = {"ca": "ca.pem", "cert": "broker.pem", "key": "broker.key"}
OPTIONS = (
    "--bind-address=127.0.0.1,127.0.0.2",  # the certificate names only the first
    "--require-secure-transport=ON",
    "--default-time-zone=+05:00",
)


@dataclass(frozen=True)
class SecuredMysql:
    """A running MySQL."""

    port: int
    folder: Path

    def settings(self) -> dict[str, str]:
        """Return the settings of a run that uses this server."""
        return {
            "MYSQL_URL": f"mysql://{USER}@localhost:{self.port}",
            "MYSQL_PASSWORD_FILE": str(self.folder / "password"),
            "MYSQL_SSL_CA_LOCATION": str(self.folder / "ca.pem"),
        }

    def execute(self, *statements: str) -> list[str]:
        """Execute statements as root; return the first column of the last one's result."""
        socket = str(self.folder / "mysql.sock")
        with (
            pymysql.connect(unix_socket=socket, user="root", password=ROOT) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return [str(row[0]) for row in cursor.fetchall()]

    def databases(self) -> set[str]:
        """Return the names of the databases that runs created."""
        return {name for name in self.execute("SHOW DATABASES") if name.startswith("racetrack")}

    def allow(self, rights: Iterable[str]) -> None:
        """Give the user these rights and no others."""
        revoke = f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM '{USER}'@'%'"
        self.execute(revoke, *(f"GRANT {right} TO '{USER}'@'%'" for right in rights))


@contextmanager
def secured_mysql() -> Iterator[SecuredMysql]:
    """Start MySQL with all RIGHTS granted; stop it at the end."""
    parts = install.ensure(["mysql"], install.read_versions(), print)
    (port,) = free_ports(1)
    top = Path(tempfile.mkdtemp(prefix="racetrack-mysql-"))
    top.chmod(0o711)  # MySQL runs as another user than root
    folder = top / "mysql"
    folder.mkdir()
    make_certificates(folder)
    (folder / "password").write_text(f"{PASSWORD}\n")
    used = {"MYSQL_PORT": str(port), "MYSQL_ROOT_PASSWORD": ROOT, "BIND_ADDRESS": "127.0.0.1"}
    launch = find_service("mysql").launch(Context(load(used), folder, parts))
    options = [f"--ssl-{name}={folder}/{file}" for name, file in FILES.items()]
    command = [*launch.argv, *options, *OPTIONS]
    mysql = SecuredMysql(port, folder)
    try:
        is_ready = partial(mysql.execute, "SELECT 1")
        with running([command], folder, is_ready, not_ready=pymysql.MySQLError):
            password = pymysql.converters.escape_string(PASSWORD)
            mysql.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{password}'")
            mysql.allow(RIGHTS)
            yield mysql
    finally:
        shutil.rmtree(top)


def main() -> None:
    """Start MySQL, print the settings, and stop it when the input ends."""
    with secured_mysql() as mysql:
        print_settings(mysql.settings())


if __name__ == "__main__":
    main()
