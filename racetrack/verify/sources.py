"""The sources in DuckDB, and what the views should hold by them.

Schema `source` has the tables `users`, `items`, `purchases` (MySQL's), `pageviews` (the topic's:
partition, offset, and the fields of its JSON), `pageviews_stg` (with what a url says), and
`dd_flagged_profiles` (the topic's: `message`, as it was sent). Schema `expected` has a table for
each view, by `racetrack/verify/views/<view>.sql`. Times are epoch milliseconds.
"""
# ruff: noqa: S608 - SQL is put together from names in the catalogue only

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from racetrack.catalogue import ColumnType, View, find_view

SQL = Path(__file__).with_name("views")
# DuckDB's share of the machine's memory; what does not fit is put on the disk.
MEMORY = "2GB"
TABLES = tuple(map(find_view, ("users", "items", "purchases")))
_ARROW = {
    ColumnType.INTEGER: pa.int64(),
    ColumnType.TEXT: pa.string(),
    # Not the widest, since SQL multiplies and adds up.
    ColumnType.DECIMAL: pa.decimal128(12, 2),
    ColumnType.TIME: pa.timestamp("us"),
}
_MADE = """
CREATE SCHEMA source;
CREATE SCHEMA expected;
CREATE TABLE source.pageviews (
    "partition" INTEGER, "offset" BIGINT,
    user_id BIGINT, url VARCHAR, channel VARCHAR, received_at BIGINT
);
CREATE TABLE source.dd_flagged_profiles (message VARCHAR);
-- `/products/7` is type `products`, target 7; `/profiles/7` is type `profiles`, target 7.
CREATE VIEW source.pageviews_stg AS
SELECT *,
    CASE WHEN starts_with(url, '/products/') THEN 'products'
         WHEN starts_with(url, '/profiles/') THEN 'profiles' END AS pageview_type,
    CASE WHEN pageview_type IS NOT NULL THEN url[11:]::BIGINT END AS target_id
FROM source.pageviews;
"""


def open_database(spill: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory, with empty tables for the topics; it may write into `spill`."""
    db = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    # Nothing is fetched from anywhere: what DuckDB brings is enough.
    db.execute("SET autoinstall_known_extensions = false; SET TimeZone = 'UTC'")
    db.execute(_MADE)
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
        f"epoch_ms({name}) AS {name}"
        for name, kind in view.columns.items()
        if kind is ColumnType.TIME
    )
    db.register("taken", table)
    db.execute(
        f"CREATE OR REPLACE TABLE source.{view.name} AS SELECT * REPLACE ({in_ms}) FROM taken"
    )
    db.unregister("taken")


def expect(db: duckdb.DuckDBPyConnection, view: View) -> None:
    """Make `expected.<view>`; views that its SQL reads must have been made."""
    sql = (SQL / f"{view.name}.sql").read_text()
    db.execute(f"CREATE OR REPLACE TABLE expected.{view.name} AS {sql}")


def between(db: duckdb.DuckDBPyConnection, from_ms: int, until_ms: int) -> None:
    """Say between which two instants (epoch ms) the time lay by which the engine's window stood."""
    db.execute(f"SET VARIABLE from_ms = {from_ms}; SET VARIABLE until_ms = {until_ms}")
