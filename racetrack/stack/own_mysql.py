"""A MySQL that the user provides.

Each run has a database of its own there, named RUN_NAME, and drops it at the end.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pymysql
from pymysql.cursors import Cursor

from racetrack import mysql_endpoint
from racetrack.config import Settings
from racetrack.mysql_endpoint import words
from racetrack.stack.elsewhere import RUN_NAME, Failure, Passed, measure_clock, refused

CHECK_WITHIN_S = 5
DROP_WITHIN_S, LOCK_WITHIN_S = 15, 10
TABLE = f"{RUN_NAME}.tried"
NOW_MS = "SELECT UNIX_TIMESTAMP(SYSDATE(6)) * 1000"
# Error codes of MySQL for a missing right, and for a refused login.
FORBIDDEN, LOGIN_REFUSED = (1044, 1142, 1227, 1370), 1045
LOGIN = ("MYSQL_URL", "Check its user, and MYSQL_PASSWORD_FILE")
CERTIFICATE = (
    "MYSQL_SSL_CA_LOCATION",
    "Name the file of the authority that signed the server's certificate, and the host as in it",
)
OTHER = ("MYSQL_URL", "Check host and port, and that the server accepts clients on this machine")
SEE_LOG = "See the server's log"
# Debezium reads rows from the binary log, so it has to contain whole rows.
LOG_VARIABLES = {"log_bin": "1", "binlog_format": "ROW", "binlog_row_image": "FULL"}


@dataclass(frozen=True)
class Step:
    """A step of the check: its name for users, its statements, and the right that it needs."""

    what: str
    statements: Sequence[str]
    grant: str


IN_DATABASE = r"ALL ON `racetrack\_%`.*"
CREATE = Step("create a database", (f"CREATE DATABASE {RUN_NAME}",), IN_DATABASE)
WRITE = Step(
    "write tables",
    (
        f"CREATE TABLE {TABLE} (number INT PRIMARY KEY)",
        f"INSERT INTO {TABLE} VALUES (1)",  # noqa: S608  # our own names
        f"UPDATE {TABLE} SET number = 2",  # noqa: S608
        f"DELETE FROM {TABLE}",  # noqa: S608
    ),
    IN_DATABASE,
)
# Debezium locks tables in this way for its snapshot.
LOCK_STATEMENTS = (f"FLUSH TABLES {TABLE} WITH READ LOCK", "UNLOCK TABLES")
LOCK = Step("lock tables", LOCK_STATEMENTS, "RELOAD ON *.*")
LIST_LOGS = Step("list binary logs", ("SHOW BINARY LOGS",), "REPLICATION CLIENT ON *.*")
# SHOW REPLICAS needs the same right as reading the binary log.
READ_LOG = Step("read the binary log", ("SHOW REPLICAS",), "REPLICATION SLAVE ON *.*")
DROP = Step("remove the database", (f"DROP DATABASE {RUN_NAME}",), IN_DATABASE)


class _Check:
    """Operations of the check over one connection."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.passed = ["log in"]
        self.failures: list[Failure] = []

    def run(self) -> None:
        """Try all steps. After a failure, skip the steps that depend on the failed one."""
        self._require_whole_rows()
        self._try(LIST_LOGS)
        self._try(READ_LOG)
        if self._try(CREATE):
            self._try(WRITE) and self._try(LOCK)
            self._try(DROP)

    def now_ms(self) -> float:
        """Return the server's time in epoch milliseconds."""
        self._cursor.execute(NOW_MS)
        ((now_ms,),) = self._cursor.fetchall()
        return float(now_ms)

    def _try(self, step: Step) -> bool:
        try:
            for statement in step.statements:
                self._cursor.execute(statement)
        except pymysql.MySQLError as error:
            answer = f"can't {step.what}: {words(error)}"
            is_forbidden = error.args[0] in FORBIDDEN
            remedy = f"As an administrator: GRANT {step.grant} TO …" if is_forbidden else SEE_LOG
            self.failures.append(Failure("MYSQL_URL", answer, remedy))
            return False
        self.passed.append(step.what)
        return True

    def _require_whole_rows(self) -> None:
        names = ", ".join(f"@@GLOBAL.{name}" for name in LOG_VARIABLES)
        self._cursor.execute(f"SELECT {names}")
        values = self._cursor.fetchone() or ()
        for (name, wanted), value in zip(LOG_VARIABLES.items(), values, strict=True):
            if str(value) != wanted:
                answer = f"the server has {name}={value}"
                remedy = f"Debezium needs {name}={wanted}: change the server's configuration"
                self.failures.append(Failure("MYSQL_URL", answer, remedy))


class _Mysql:
    """Implementation of `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "mysql", "MySQL", "MYSQL_URL", False

    def address(self, settings: Settings) -> str:
        return settings.mysql_url.rpartition("@")[2]

    def check(self, settings: Settings) -> Passed:
        """Create, fill, lock and drop a table in a new database, and look at the binary log."""
        try:
            with _open(settings, CHECK_WITHIN_S) as cursor:
                check = _Check(cursor)
                check.run()
                clock = measure_clock(self.title, check.now_ms)
        except (pymysql.MySQLError, OSError) as error:
            setting, remedy = _cause(error)
            why = Failure(setting, f"can't log in: {words(error)}", remedy)
            raise refused(self.title, self.address(settings), [why]) from None
        if check.failures:
            raise refused(self.title, self.address(settings), check.failures)
        return Passed(tuple(check.passed), clock)

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Drop the run's database."""
        if not run_name:
            return ()
        address, drop = self.address(settings), f"DROP DATABASE {run_name}"
        try:
            with _open(settings, DROP_WITHIN_S) as cursor:
                cursor.execute("SHOW DATABASES")
                if (run_name,) not in cursor.fetchall():
                    return ()
                cursor.execute(f"SET SESSION lock_wait_timeout = {LOCK_WITHIN_S}")
                cursor.execute(drop)
        except (pymysql.MySQLError, OSError) as error:
            return (f"not removed from {address}: {words(error)}\n  Remove it yourself: {drop};",)
        return (f"removed the database {run_name} from {address}",)


@contextmanager
def _open(settings: Settings, within_s: int) -> Iterator[Cursor]:
    found = mysql_endpoint.elsewhere(settings, RUN_NAME)
    if not found:
        raise ValueError("MYSQL_URL is empty")
    with found.connect_reader(within_s) as connection, connection.cursor() as cursor:
        yield cursor


def _cause(error: Exception) -> tuple[str, str]:
    """Return the setting at fault and the remedy for a login that failed."""
    if error.args and error.args[0] == LOGIN_REFUSED:
        return LOGIN
    is_about_tls = any(word in words(error) for word in ("SSL", "TLS", "CERTIFICATE"))
    return CERTIFICATE if is_about_tls or not isinstance(error, pymysql.MySQLError) else OTHER


ELSEWHERE = _Mysql()
