"""The connection to MySQL: waiting for it, seeding the shop, and changing it. Blocking; its errors
in words.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable

from loadgen import shop
from loadgen.changes import Change, Statement
from loadgen.config import Config, ConfigError

CONNECT_TIMEOUT_S = 5
# A server that hangs in mid-statement is taken for dead after this long.
ANSWER_TIMEOUT_S = 10
# Wrong user, password or rights (MySQL's error numbers): waiting mends none of them.
_REFUSALS = (1044, 1045, 1142, 1227)


class MySqlError(Exception):
    """MySQL can't be reached or would not do something. Its text is one line."""


class Shop:
    """A connection to the shop's database; opened with the first call that needs it, closed by an
    error.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._connection: Any = None
        # What the last failed commit had written: (first id, user_id, item_id). Whether it counts
        # is asked before writing again.
        self._in_doubt: tuple[int, int, int] | None = None
        # What changes of an unfinished transaction were decided to be. None: there is nothing to
        # change.
        self._decided: list[Statement | None] = []

    def write_purchases(self, buys: Sequence[tuple[int, int, int]]) -> None:
        """Insert (user_id, item_id, quantity) in one transaction.

        After MySqlError call again with the same: no row comes twice.
        """
        with self._transaction() as cursor:
            if self._in_doubt is None or not self._was_committed(cursor):
                for sql, values in shop.purchase_rows(buys).statements():
                    cursor.execute(sql, values)
                    self._in_doubt = self._in_doubt or (cursor.lastrowid, buys[0][0], buys[0][1])
        self._in_doubt = None

    def _was_committed(self, cursor: Any) -> bool:
        """The connection broke between commit and its answer: is the row there?"""
        cursor.execute(
            "SELECT COUNT(*) FROM shop.purchases WHERE id = %s AND user_id = %s AND item_id = %s",
            self._in_doubt,
        )
        found = bool(cursor.fetchone()[0])
        if not found:
            self._in_doubt = None
        return found

    def apply(self, changes: Sequence[Change]) -> int:
        """Carry out changes in one transaction; how many of them had no row to change.

        After MySqlError call again with the same: what was decided stays, so that none has its
        effect twice.
        """
        with self._transaction() as cursor:

            def ask(sql: str, values: Sequence[object]) -> Any:
                cursor.execute(sql, values)
                return cursor.fetchone()

            for number, change in enumerate(changes):
                if number == len(self._decided):
                    self._decided.append(change.decide(ask, self._config, change.which, change.how))
                statement = self._decided[number]
                if statement is not None:
                    cursor.execute(*statement)
        in_vain = self._decided.count(None)
        self._decided = []
        return in_vain

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
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
        """Create what is missing of the shop.

        A table with rows is left as it is, if it has as many as the settings say. All or nothing: a
        start that was broken off leaves no half-filled shop.
        """
        with self._transaction() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {shop.DATABASE}")
            for sql in shop.TABLES.values():
                cursor.execute(sql)
            self._fill(cursor, log)

    def _fill(self, cursor: Any, log: Callable[[str], None]) -> None:
        config = self._config
        for insert, exact in (
            (shop.seed_users(config.seed, config.users), "SHOP_USERS"),
            (shop.seed_items(config.seed, config.items), "SHOP_ITEMS"),
            (shop.seed_purchases(config.seed, config.users, config.items), None),
        ):
            cursor.execute(insert.count_sql())
            rows = cursor.fetchone()[0]
            if rows and exact and rows != len(insert.rows):
                raise ConfigError(
                    f"shop.{insert.table} holds {rows} rows, and {exact} is {len(insert.rows)}. "
                    f"Set {exact}={rows}, or drop the database shop and start again."
                )
            if not rows:
                for sql, values in insert.statements():
                    cursor.execute(sql, values)
                log(f"Seeded shop.{insert.table} with {len(insert.rows)} rows")

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


def wait_and_seed(config: Config, deadline_s: float, log: Callable[[str], None]) -> Shop:
    """Seed the shop as soon as MySQL answers; the shop, connected, so that the first purchase need
    not wait for that. ConfigError if MySQL refuses this user, MySqlError when `deadline_s` has
    passed.

    `deadline_s` is a time of time.monotonic().
    """
    where = f"MySQL at {config.mysql_host}:{config.mysql_port}"
    shop_database = Shop(config)
    said_s = time.monotonic()
    while True:
        try:
            shop_database.seed(log)
            return shop_database
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
            if time.monotonic() - said_s > 5:
                said_s = time.monotonic()
                log(f"Waiting for {where}: {error}")
            time.sleep(0.1)  # between two attempts to connect, which is the condition


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
