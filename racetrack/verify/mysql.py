"""Reads the workload's tables from MySQL, all at one instant."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import pymysql
import pymysql.cursors

from racetrack.errors import RacetrackError
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import Workload

ANSWER_WITHIN_S = 30
Rows = tuple[tuple[Any, ...], ...]
# A table that lost a column, or is gone: what else there is can be compared.
UNKNOWN_COLUMN, NO_SUCH_TABLE = 1054, 1146
STATEMENT_CHARS, MOST_STATEMENTS = 100, 5
_COMMENTS = re.compile(r"^(\s|/\*.*?\*/|use `[^`]*`;)*", re.IGNORECASE | re.DOTALL)
_CHANGES_ROWS = re.compile(r"(TRUNCATE|(DROP|RENAME|ALTER)\s+TABLE)\b", re.IGNORECASE)


def read_tables(stack: Stack, workload: Workload) -> dict[str, Rows | str]:
    """Return the rows by table, columns in the order of its view; or why it can't be read.

    Raises:
        RacetrackError: MySQL does not answer, or refuses.
    """
    try:
        with _connect(stack, workload.database) as connection, connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            return {
                view.name: _read(cursor, view.name, view.columns) for view in workload.table_views()
            }
    except pymysql.MySQLError as error:
        raise _no_answer(stack, error) from error


def statements_without_messages(stack: Stack, tables: Collection[str]) -> list[str]:
    """Return the statements in MySQL's log that change rows of these tables, though Debezium sends
    no message of it: TRUNCATE, and what alters, renames or drops a table; the first few.

    Raises:
        RacetrackError: MySQL does not answer, or refuses.
    """
    found: list[str] = []
    names = re.compile(rf"\b({'|'.join(map(re.escape, tables))})\b", re.IGNORECASE)
    try:
        with (
            _connect(stack, "debezium") as connection,
            connection.cursor(pymysql.cursors.SSCursor) as cursor,
        ):
            cursor.execute("SHOW BINARY LOGS")
            for log, *_ in cursor.fetchall():
                cursor.execute(f"SHOW BINLOG EVENTS IN '{log}'")
                for name, position, kind, _server, _end, info in cursor:
                    sql = _COMMENTS.sub("", info) if kind == "Query" else ""
                    if _CHANGES_ROWS.match(sql) and names.search(sql):
                        short = " ".join(sql.split())[:STATEMENT_CHARS]
                        found.append(f"{short} ({name}, position {position})")
    except pymysql.MySQLError as error:
        raise _no_answer(stack, error) from error
    return found[:MOST_STATEMENTS]


def _connect(stack: Stack, user: str) -> "pymysql.Connection[Any]":
    """As the user of the workload's database, who has its name, or as `debezium`."""
    where, settings = stack.endpoints, stack.settings
    is_debezium = user == "debezium"
    secret = settings.mysql_debezium_password if is_debezium else settings.mysql_shop_password
    return pymysql.connect(
        host=where.mysql_host,
        port=where.mysql_port,
        user=user,
        password=secret.get_secret_value(),
        database=None if is_debezium else user,
        connect_timeout=ANSWER_WITHIN_S,
        read_timeout=ANSWER_WITHIN_S,
    )


def _read(cursor: Any, table: str, columns: Mapping[str, object]) -> Rows | str:
    try:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608  # our own names
    except pymysql.MySQLError as error:
        if error.args[0] in (UNKNOWN_COLUMN, NO_SUCH_TABLE):
            return f"MySQL: {error.args[1]}"
        raise
    rows: Rows = cursor.fetchall()
    return rows


def _no_answer(stack: Stack, error: pymysql.MySQLError) -> RacetrackError:
    where = stack.endpoints
    return RacetrackError(
        f"MySQL at {where.mysql_host}:{where.mysql_port} does not give its tables: {error}."
        " Its log is stack/mysql.log."
    )
