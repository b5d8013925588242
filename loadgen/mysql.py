"""Connection to MySQL, with blocking calls: waits for the server, creates and fills the workload's
database, and writes changes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple

from loadgen.config import Config, ConfigError

CONNECT_TIMEOUT_S = 5
# A server that does not answer for this long counts as dead.
ANSWER_TIMEOUT_S = 10
ROWS_PER_INSERT = 1_000
# MySQL error numbers for a wrong user, password or missing rights: no reason to retry.
_REFUSALS = (1044, 1045, 1142, 1227)


class MySqlError(Exception):
    """MySQL is unreachable or refused a statement. The message is one line."""


class Insert(NamedTuple):
    """Rows to insert into a table: column names, and a tuple of values per row. `row` is the SQL
    for the values of a row, if it is more than placeholders."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    row: str = ""

    def statements(self) -> Iterator[tuple[str, list[object]]]:
        """Yield (SQL with placeholders, values) for ROWS_PER_INSERT rows at a time, to save round
        trips."""
        names = ", ".join(self.columns)
        row = self.row or "(" + ", ".join(["%s"] * len(self.columns)) + ")"
        for start in range(0, len(self.rows), ROWS_PER_INSERT):
            part = self.rows[start : start + ROWS_PER_INSERT]
            values = ", ".join([row] * len(part))
            sql = f"INSERT INTO {self.table} ({names}) VALUES {values}"  # noqa: S608 - ours
            yield sql, [value for values in part for value in values]

    def and_rows(self, rows: Sequence[tuple[object, ...]]) -> Insert:
        """Return a copy with more rows at the end."""
        return self._replace(rows=[*self.rows, *rows])

    def count_sql(self) -> str:
        """Return SQL that counts the rows of the table."""
        return f"SELECT COUNT(*) FROM {self.table}"  # noqa: S608 - our own names


class Seed(NamedTuple):
    """Initial rows of a table. `exact` is the setting, if any, that determines their number, not
    counting `reserved` rows."""

    insert: Insert
    exact: str = ""
    reserved: int = 0


class Database:
    """Connection to a workload's database. It opens when first needed, and an error closes it.
    Subclasses define the initial rows and the changes. Their SQL does not name the database, which
    has another name in a MySQL that other runs use too."""

    create: Sequence[str]  # statements that create missing tables

    def __init__(self, config: Config) -> None:
        """Prepare a connection. Raises ConfigError if there is no password."""
        if not config.mysql_password:
            raise ConfigError(
                "MYSQL_PASSWORD is not set. It is the password of MYSQL_USER; set it in the"
                " environment and start again."
            )
        self._config = config
        self._connection: Any = None
        self._exists = False  # whether the database exists

    @property
    def name(self) -> str:
        """Name of the database."""
        return self._config.mysql_database

    def seeds(self) -> Sequence[Seed]:
        """Return the initial rows of the tables, in the order in which they are filled."""
        raise NotImplementedError

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """Provide a cursor; commit at the end, or roll back everything.

        Raises MySqlError."""
        from mysql.connector import Error  # type: ignore[import-not-found]

        try:
            connection = self._open()
            cursor = connection.cursor(buffered=True)
            yield cursor
            connection.commit()
            cursor.close()
        except (Error, OSError) as error:
            self.close()
            raise MySqlError(_one_line(error)) from error

    def seed(self, log: Callable[[str], None]) -> None:
        """Create the database, missing tables and initial rows, in one transaction.

        A table that has rows is left unchanged. Raises ConfigError if their number contradicts the
        settings."""
        with self.transaction() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {self.name}")
            cursor.execute(f"USE {self.name}")
            self._exists = True
            for sql in self.create:
                cursor.execute(sql)
            for seed in self.seeds():
                self._fill(cursor, seed, log)

    def _fill(self, cursor: Any, seed: Seed, log: Callable[[str], None]) -> None:
        insert, exact = seed.insert, seed.exact
        cursor.execute(insert.count_sql())
        rows = cursor.fetchone()[0]
        if rows and exact and rows != len(insert.rows):
            raise ConfigError(
                f"{insert.table} has {rows} rows, but {exact} requires {len(insert.rows)}. "
                f"Set {exact}={rows - seed.reserved}, or drop the database {self.name} and start "
                "again."
            )
        if not rows:
            for sql, values in insert.statements():
                cursor.execute(sql, values)
            log(f"Seeded {insert.table} with {len(insert.rows)} rows")

    def _open(self) -> Any:
        if self._connection is None:
            import mysql.connector  # type: ignore[import-not-found]

            config = self._config
            # The connection is encrypted, because MySQL's password exchange needs that. The
            # certificate is not verified, because MySQL creates its own.
            self._connection = mysql.connector.connect(
                host=config.mysql_host,
                port=config.mysql_port,
                user=config.mysql_user,
                password=config.mysql_password,
                database=self.name if self._exists else None,
                # Times of rows are in UTC, whatever the server's time zone.
                time_zone="+00:00",
                connection_timeout=CONNECT_TIMEOUT_S,
                read_timeout=ANSWER_TIMEOUT_S,
                write_timeout=ANSWER_TIMEOUT_S,
                use_pure=True,
            )
        return self._connection

    def close(self) -> None:
        """Drop the connection without notifying the server, which may be gone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            from mysql.connector import Error

            with contextlib.suppress(Error, OSError):  # the connection may be broken
                connection.shutdown()


def wait_and_seed(
    database: Database, config: Config, deadline_s: float, log: Callable[[str], None]
) -> None:
    """Seed the database as soon as MySQL answers, and stay connected for the first change.

    `deadline_s` is a time of time.monotonic(). Raises ConfigError if MySQL refuses the user,
    MySqlError after the deadline."""
    where = f"MySQL at {config.mysql_host}:{config.mysql_port}"
    logged_s = time.monotonic()
    while True:
        try:
            database.seed(log)
            return
        except MySqlError as error:
            if getattr(error.__cause__, "errno", None) in _REFUSALS:
                raise ConfigError(
                    f"{where} refuses {config.mysql_user}: {error}. "
                    "Check MYSQL_USER, MYSQL_PASSWORD and the user's rights."
                ) from error
            if time.monotonic() > deadline_s:
                raise MySqlError(
                    f"{where} did not answer in {config.start_timeout_s} s: {error}. "
                    "Start it, or set MYSQL_HOST and MYSQL_PORT."
                ) from error
            if time.monotonic() - logged_s > 5:
                logged_s = time.monotonic()
                log(f"Waiting for {where}: {error}")
            time.sleep(0.1)  # between connection attempts


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
