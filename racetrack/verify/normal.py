"""One form for the values of every engine, so that they can be compared: the only place that knows
of types. A value that can't be brought into it without loss is an error, and never rounded away.

- integer: 128 bits; also a boolean (0 or 1), or another number or its text if it is whole;
- decimal: 28 digits before the point and 10 after it; also a whole number, or text; a binary
  floating point number is refused, since it is not exact;
- float: a double; also a decimal, a whole number, or text;
- time: epoch milliseconds, rounded to the nearest; also a timestamp (of UTC, if it names no
  zone), or ISO 8601 text;
- text: text.
"""
# ruff: noqa: S608 - SQL is put together from names of the workload only

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from racetrack.errors import RacetrackError
from racetrack.workloads.contract import ColumnType, View

if TYPE_CHECKING:
    import duckdb
    import pyarrow

DECIMAL = "DECIMAL(38, 10)"
# What a time is taken for that is on no calendar, such as MySQL's 0000-00-00.
NO_TIME_MS = -(2**53)
ERROR_CHARS = 300
_WHOLE = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")}
_WHOLE |= {"INTEGER", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_BINARY = {"FLOAT", "DOUBLE"}


class NotComputed(RacetrackError):
    """What a view should hold is beyond what the verifier can compute: no fault of the engine."""


class WrongColumns(RacetrackError):
    """What the engine delivered lacks a column, or has one of a type that can't be compared."""


def of_engine(
    db: "duckdb.DuckDBPyConnection", table: "pyarrow.Table", view: View, name: str
) -> None:
    """Make the table `name` of what an engine holds of a view: its columns, in the one form.

    Raises:
        WrongColumns: a column is missing, or can't be compared; the message names it.
    """
    import duckdb

    db.register("delivered", _without_zones(table))
    try:
        wanted = columns(view, view.columns, _types(db, "delivered"))
        db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {wanted} FROM delivered")
    except duckdb.Error as error:
        raise WrongColumns(f"A value of {view.name} can't be compared: {short(error)}") from error
    finally:
        db.unregister("delivered")


def of_sources(db: "duckdb.DuckDBPyConnection", table: str, view: View, name: str) -> None:
    """Make the table `name` of what `table` says that a view should hold, in the one form, with the
    columns beside it that only the comparison reads.

    Raises:
        NotComputed: a value is beyond what can be compared.
    """
    import duckdb

    kinds = {column: kind for column, kind in view.columns.items() if column != view.window}
    if view.top_n:
        kinds["place"] = ColumnType.INTEGER
    if view.window:
        kinds |= {
            f"{view.window}_least": ColumnType.INTEGER,
            f"{view.window}_most": ColumnType.INTEGER,
        }
    wanted = columns(view, kinds, _types(db, table))
    try:
        db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {wanted} FROM {table}")
    except duckdb.Error as error:
        raise NotComputed(f"A value of {view.name} can't be computed: {short(error)}") from error


def short(error: object) -> str:
    """The first line of an error, cut: it may hold a value of any length."""
    line = (str(error).splitlines() or [""])[0]
    return line if len(line) <= ERROR_CHARS else f"{line[:ERROR_CHARS]}…"


def columns(view: View, kinds: Mapping[str, ColumnType], types: Mapping[str, str]) -> str:
    """The SQL that selects columns of a view in the one form; `types` are DuckDB's, by column.

    Raises:
        WrongColumns: a column is missing or of a type that can't be compared.
    """
    if missing := [name for name in kinds if name not in types]:
        raise WrongColumns(
            f"{view.name} has no column {', '.join(missing)}; it has {', '.join(types)}."
        )
    return ", ".join(
        f'{_in_one_form(view, name, kind, types[name])} AS "{name}"' for name, kind in kinds.items()
    )


def _types(db: "duckdb.DuckDBPyConnection", name: str) -> dict[str, str]:
    return {row[0]: row[1] for row in db.execute(f"DESCRIBE {name}").fetchall()}


def _in_one_form(view: View, name: str, kind: ColumnType, type_: str) -> str:
    forms = {
        ColumnType.INTEGER: _integer,
        ColumnType.TEXT: _text,
        ColumnType.DECIMAL: _decimal,
        ColumnType.FLOAT: _float,
        ColumnType.TIME: _time,
    }
    if type_ == '"NULL"':  # nothing but nulls, so that their type could not be told
        return "NULL"
    form = forms[kind](f'"{name}"', re.sub(r"\(.*", "", type_))
    if form is None:
        raise WrongColumns(
            f"The column {name} of {view.name} should hold {kind.value}s, and is of type {type_}."
        )
    return form


def _integer(column: str, type_: str) -> str | None:
    if type_ in _WIDE:
        return f"{column}::HUGEINT"
    if type_ == "BOOLEAN" or type_ in _WHOLE:
        return f"{column}::BIGINT"
    if type_ == "DECIMAL" or type_ in _BINARY:
        return _if(f"{column} = trunc({column})", f"{column}::HUGEINT", column, "is not whole")
    if type_ == "VARCHAR":
        return _if_matches(column, r"[+-]?\d+", f"{column}::HUGEINT", "is not a whole number")
    return None


def _text(column: str, type_: str) -> str | None:
    return column if type_ == "VARCHAR" else None


def _decimal(column: str, type_: str) -> str | None:
    if type_ in _WHOLE:
        return f"{column}::{DECIMAL}"
    if type_ == "DECIMAL":
        exact = f"{column}::{DECIMAL}"
        return _if(f"{exact} = {column}", exact, column, "has more than 10 digits after the point")
    if type_ == "VARCHAR":
        number = r"[+-]?\d+(\.\d{0,10}0*)?"
        return _if_matches(column, number, f"{column}::{DECIMAL}", "is no such decimal number")
    return None


def _float(column: str, type_: str) -> str | None:
    known = type_ in {*_WHOLE, *_BINARY, "DECIMAL", "VARCHAR"}
    return f"{column}::DOUBLE" if known else None


def _time(column: str, type_: str) -> str | None:
    if type_ in _WHOLE:
        return f"{column}::BIGINT"
    if type_ in {*_BINARY, "DECIMAL"}:
        return f"round({column})::BIGINT"
    if type_ in {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}:
        return f"(epoch_us({column}::TIMESTAMP) + 500) // 1000"
    if type_ == "VARCHAR":
        return f"(epoch_us({column}::TIMESTAMPTZ) + 500) // 1000"
    return None


def _if(condition: str, then: str, column: str, complaint: str) -> str:
    """`then` where the condition holds, null where the column is, else an error."""
    return (
        f"CASE WHEN {column} IS NULL THEN NULL WHEN {condition} THEN {then}"
        f" ELSE error(concat({column}, ' {complaint}')) END"
    )


def _if_matches(column: str, pattern: str, then: str, complaint: str) -> str:
    return _if(f"regexp_full_match({column}, '{pattern}')", then, column, complaint)


def _without_zones(table: "pyarrow.Table") -> "pyarrow.Table":
    """The same instants as times of UTC."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:
            plain = table.column(number).cast(pa.timestamp(field.type.unit))
            table = table.set_column(number, field.name, plain)
    return table
