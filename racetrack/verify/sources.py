"""The sources in DuckDB, and what the views should hold by them.

Schema `source` has MySQL's tables, and those that the workload makes of its topics. Schema
`expected` has a table for each view, by the workload's SQL. Times are epoch milliseconds.
"""
# ruff: noqa: S608 - SQL is put together from names of the workload only

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from racetrack.workload import ColumnType, View, Workload

# DuckDB's share of the machine's memory; what does not fit is put on the disk.
MEMORY = "2GB"
_ARROW = {
    ColumnType.INTEGER: pa.int64(),
    ColumnType.TEXT: pa.string(),
    # Not the widest, since SQL multiplies and adds up.
    ColumnType.DECIMAL: pa.decimal128(12, 2),
    ColumnType.TIME: pa.timestamp("us"),
}


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
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(view.columns)
    table = pa.table(
        {
            name: pa.array(column, _ARROW[kind])
            for (name, kind), column in zip(view.columns.items(), columns, strict=True)
        }
    )
    in_ms = ", ".join(
        f"epoch_ms({name}) AS {name}" if kind is ColumnType.TIME else name
        for name, kind in view.columns.items()
    )
    db.register("taken", table)
    db.execute(f"CREATE OR REPLACE TABLE source.{view.name} AS SELECT {in_ms} FROM taken")
    db.unregister("taken")


def expect(db: duckdb.DuckDBPyConnection, workload: Workload, view: View) -> None:
    """Make `expected.<view>`; views that its SQL reads must have been made."""
    sql = (workload.sql / f"{view.name}.sql").read_text()
    db.execute(f"CREATE OR REPLACE TABLE expected.{view.name} AS {sql}")


def between(db: duckdb.DuckDBPyConnection, from_ms: int, until_ms: int) -> None:
    """Say between which two instants (epoch ms) the time lay by which the engine's window stood."""
    db.execute(f"SET VARIABLE from_ms = {from_ms}; SET VARIABLE until_ms = {until_ms}")
