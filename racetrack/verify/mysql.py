"""Reads the workload's tables from MySQL, all at one instant."""

from typing import Any

import pymysql

from racetrack.errors import RacetrackError
from racetrack.stack.contract import Stack
from racetrack.workload import Workload

ANSWER_WITHIN_S = 30


def read_tables(stack: Stack, workload: Workload) -> dict[str, tuple[tuple[Any, ...], ...]]:
    """The rows by table, columns in the order of its view.

    Raises:
        RacetrackError: MySQL does not answer, or refuses.
    """
    where, settings = stack.endpoints, stack.settings
    try:
        connection = pymysql.connect(
            host=where.mysql_host,
            port=where.mysql_port,
            user=workload.database,
            password=settings.mysql_shop_password.get_secret_value(),
            database=workload.database,
            connect_timeout=ANSWER_WITHIN_S,
            read_timeout=ANSWER_WITHIN_S,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            views = workload.table_views()
            return {view.name: _read(cursor, view.name, view.columns) for view in views}
    except pymysql.MySQLError as error:
        raise RacetrackError(
            f"MySQL at {where.mysql_host}:{where.mysql_port} does not give its tables: {error}."
            " Its log is stack/mysql.log."
        ) from error


def _read(cursor: Any, table: str, columns: Any) -> tuple[tuple[Any, ...], ...]:
    cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608  # our own names
    rows: tuple[tuple[Any, ...], ...] = cursor.fetchall()
    return rows
