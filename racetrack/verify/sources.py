"""The sources in DuckDB, and what the views should hold by them.

Schema `source` has MySQL's tables, and those that the workload makes of its topics. Schema
`expected` has a table for each view, by the workload's SQL. Times are epoch milliseconds.
"""
# ruff: noqa: S608 - SQL is put together from names of the workload only

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from racetrack.verify import normal
from racetrack.workloads.contract import ColumnType, View, Workload

# DuckDB's share of the machine's memory; what does not fit is put on the disk.
MEMORY = "2GB"
# Of decimals, at least. SQL multiplies and adds up, so that the widest would not do.
DECIMAL_DIGITS, DECIMAL_SCALE = 12, 2


def open_database(workload: Workload, spill: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory, with empty tables for the topics; it may write into `spill`."""
    db = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    # Nothing is fetched from anywhere: what DuckDB brings is enough.
    db.execute("SET autoinstall_known_extensions = false; SET TimeZone = 'UTC'")
    db.execute("CREATE SCHEMA source; CREATE SCHEMA expected")
    db.execute(workload.create)
    return db


def take_table(db: duckdb.DuckDBPyConnection, view: View, rows: Iterable[Sequence[Any]]) -> None:
    """Make `source.<view>` of a table's rows: values as PyMySQL gives them, columns as the view's.

    Taking it again replaces it.

    Raises:
        NotComputed: a column holds what its kind can't be; the message names it.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(view.columns)
    taken = {
        name: _column(view, name, kind, column)
        for (name, kind), column in zip(view.columns.items(), columns, strict=True)
    }
    db.register("taken", pa.table(taken))
    db.execute(f"CREATE OR REPLACE TABLE source.{view.name} AS SELECT * FROM taken")
    db.unregister("taken")


def take_delivered(db: duckdb.DuckDBPyConnection, view: View, table: pa.Table) -> None:
    """Make `source.<view>` of what a table's topic holds.

    Raises:
        WrongColumns: a column is missing, or can't be compared; the message names it.
    """
    normal.of_engine(db, table, view, "from_topic")
    columns = ", ".join(
        f'"{name}"::{_narrowest(db, name)} AS "{name}"'
        if kind is ColumnType.DECIMAL
        else f'"{name}"'
        for name, kind in view.columns.items()
    )
    db.execute(f"CREATE OR REPLACE TABLE source.{view.name} AS SELECT {columns} FROM from_topic")


def _narrowest(db: duckdb.DuckDBPyConnection, column: str) -> str:
    """The narrowest type for a column's decimals: SQL multiplies and adds them up."""
    found = db.execute(
        f"""SELECT coalesce(max(length(split_part(rtrim(x, '0'), '.', 2))), 0),
                   coalesce(max(length(ltrim(split_part(x, '.', 1), '-'))), 0)
            FROM (SELECT "{column}"::VARCHAR AS x FROM from_topic)"""
    ).fetchall()
    scale, whole = found[0]
    return _decimal(whole, scale)


def _decimal(whole: int, scale: int) -> str:
    scale = max(scale, DECIMAL_SCALE)
    return f"DECIMAL({min(38, max(whole + scale, DECIMAL_DIGITS))}, {scale})"


def _column(view: View, name: str, kind: ColumnType, values: Sequence[Any]) -> pa.Array:
    try:
        return _AS_ARROW[kind](values)
    except (pa.ArrowException, ArithmeticError, ValueError, TypeError) as error:
        raise normal.NotComputed(
            f"The column {name} of {view.name} in MySQL can't be compared as {kind.value}:"
            f" {normal.short(error)}"
        ) from error


def _integers(values: Sequence[Any]) -> pa.Array:
    if all(value is None or abs(value) < 2**63 for value in values):
        return pa.array(values, pa.int64())
    return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(38, 0))


def _texts(values: Sequence[Any]) -> pa.Array:
    return pa.array(
        [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values], pa.string()
    )


def _decimals(values: Sequence[Any]) -> pa.Array:
    exact = [None if value is None else Decimal(value) for value in values]
    parts = [value.as_tuple() for value in exact if value is not None]
    scale = max([DECIMAL_SCALE, *(-int(part.exponent) for part in parts)])
    whole = max([0, *(len(part.digits) + int(part.exponent) for part in parts)])
    return pa.array(exact, pa.decimal128(max(DECIMAL_DIGITS, whole + scale), scale))


def _times(values: Sequence[Any]) -> pa.Array:
    """Epoch milliseconds. PyMySQL gives text for what is on no calendar."""
    dates = [None if isinstance(value, str) else value for value in values]
    ms = pa.array(dates, pa.timestamp("us")).cast(pa.int64())
    ms = pc.divide(ms, 1000)
    if not any(isinstance(value, str) for value in values):
        return ms
    return pc.if_else(pa.array([isinstance(v, str) for v in values]), normal.NO_TIME_MS, ms)


_AS_ARROW: Mapping[ColumnType, Callable[[Sequence[Any]], pa.Array]] = {
    ColumnType.INTEGER: _integers,
    ColumnType.TEXT: _texts,
    ColumnType.DECIMAL: _decimals,
    ColumnType.TIME: _times,
}


def expect(db: duckdb.DuckDBPyConnection, workload: Workload, view: View) -> None:
    """Make `expected.<view>`; views that its SQL reads must have been made.

    Raises:
        NotComputed: DuckDB can't, such as after an overflow.
    """
    sql = (workload.sql / f"{view.name}.sql").read_text()
    try:
        db.execute(f"CREATE OR REPLACE TABLE expected.{view.name} AS {sql}")
    except duckdb.Error as error:
        raise normal.NotComputed(
            f"What {view.name} should hold can't be computed: {normal.short(error)}"
        ) from error


def between(db: duckdb.DuckDBPyConnection, from_ms: int, until_ms: int) -> None:
    """Say between which two instants (epoch ms) the time lay by which the engine's window stood."""
    db.execute(f"SET VARIABLE from_ms = {from_ms}; SET VARIABLE until_ms = {until_ms}")
