"""The connection to MySQL: waiting for it, seeding the workload's database, and changing it.
Blocking; its errors in words.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple

from loadgen.config import Config, ConfigError

CONNECT_TIMEOUT_S = 5
# A server that hangs in mid-statement is taken for dead after this long.
ANSWER_TIMEOUT_S = 10
ROWS_PER_INSERT = 1_000
# Wrong user, password or rights (MySQL's error numbers): waiting mends none of them.
_REFUSALS = (1044, 1045, 1142, 1227)


class MySqlError(Exception):
    """MySQL can't be reached or would not do something. Its text is one line."""


class Insert(NamedTuple):
    """Rows for a table (`database.table`): column names, and the rows as tuples of values; `row` is
    the SQL that a row's values go into, where that is more than the values.
    """

    table: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    row: str = ""

    def statements(self) -> Iterator[tuple[str, list[object]]]:
        """(SQL with placeholders, values) for ROWS_PER_INSERT rows at a time: a thousand times
        fewer round trips.
        """
        names = ", ".join(self.columns)
        row = self.row or "(" + ", ".join(["%s"] * len(self.columns)) + ")"
        for start in range(0, len(self.rows), ROWS_PER_INSERT):
            part = self.rows[start : start + ROWS_PER_INSERT]
            values = ", ".join([row] * len(part))
            sql = f"INSERT INTO {self.table} ({names}) VALUES {values}"  # noqa: S608 - ours
            yield sql, [value for values in part for value in values]

    def and_rows(self, rows: Sequence[tuple[object, ...]]) -> Insert:
        """With further rows at the end."""
        return self._replace(rows=[*self.rows, *rows])

    def count_sql(self) -> str:
        """SQL for how many rows the table has."""
        return f"SELECT COUNT(*) FROM {self.table}"  # noqa: S608 - our own names


class Seed(NamedTuple):
    """The first content of a table. `exact` is the setting that says how many rows that is, where
    one does, but for `reserved` rows.
    """

    insert: Insert
    exact: str = ""
    reserved: int = 0


class Database:
    """A connection to a workload's database; opened with the first call that needs it, closed by an
    error. A workload's own says what is in it, and how it changes.
    """

    name: str
    create: Sequence[str]  # the statements that make its tables, if they are not there

    def __init__(self, config: Config) -> None:
        self._config = config
        self._connection: Any = None

    def seeds(self) -> Sequence[Seed]:
        """What its tables begin with, in the order in which they are filled."""
        raise NotImplementedError

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor whose work is committed at the end: all or nothing."""
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
        """Create what is missing of the database.

        A table with rows is left as it is, if it has as many as the settings say. All or nothing: a
        start that was broken off leaves nothing half-filled.
        """
        with self.transaction() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {self.name}")
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
                f"{insert.table} holds {rows} rows, and {exact} asks for {len(insert.rows)}. "
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
            # Encrypted if the server offers it, without asking for certificates: MySQL makes its
            # own, and its password exchange needs either that or a secure channel.
            self._connection = mysql.connector.connect(
                host=config.mysql_host,
                port=config.mysql_port,
                user=config.mysql_user,
                password=config.mysql_password,
                connection_timeout=CONNECT_TIMEOUT_S,
                read_timeout=ANSWER_TIMEOUT_S,
                write_timeout=ANSWER_TIMEOUT_S,
                use_pure=True,
            )
        return self._connection

    def close(self) -> None:
        """Drop the connection, without a word to the server: it may be gone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            from mysql.connector import Error

            with contextlib.suppress(Error, OSError):  # it was broken: that is why it is closed
                connection.shutdown()


def wait_and_seed(
    database: Database, config: Config, deadline_s: float, log: Callable[[str], None]
) -> None:
    """Seed the database as soon as MySQL answers, and stay connected, so that the first change need
    not wait for that. ConfigError if MySQL refuses this user, MySqlError when `deadline_s` has
    passed.

    `deadline_s` is a time of time.monotonic().
    """
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
            time.sleep(0.1)  # between two attempts to connect, which is the condition


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
