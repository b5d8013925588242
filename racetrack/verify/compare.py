"""Compare the rows of a view with the expected rows, after converting both into a normal form."""
# ruff: noqa: S608 - the SQL contains names of the workload only

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from racetrack.errors import RacetrackError
from racetrack.results.verification import Miscounted, WrongRow
from racetrack.workloads.contract import ColumnType, View

if TYPE_CHECKING:
    import duckdb
    import pyarrow

DECIMAL = "DECIMAL(38, 10)"
# Value of invalid dates such as MySQL's 0000-00-00 in normal form.
NO_TIME_MS = -(2**53)
ERROR_CHARS = 300
_WHOLE = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")}
_WHOLE |= {"INTEGER", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_BINARY = {"FLOAT", "DOUBLE"}


class NotComputed(RacetrackError):
    """The verifier can't compute a view's expected rows. This is not an error of the engine."""


class WrongColumns(RacetrackError):
    """The engine's rows lack a column, or a column's type can't be compared."""


def normalize_engine(
    db: "duckdb.DuckDBPyConnection", table: "pyarrow.Table", view: View, name: str
) -> None:
    """Create the table `name` with an engine's rows of a view in normal form (see `columns`).

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


def normalize_sources(db: "duckdb.DuckDBPyConnection", table: str, view: View, name: str) -> None:
    """Create the table `name` with the expected rows of `table` in normal form, including columns
    that only the comparison uses (place in a top-n, bounds of a moving window).

    Raises:
        NotComputed: a value can't be compared.
    """
    import duckdb

    kinds = {column: kind for column, kind in view.columns.items() if column != view.bounded}
    if view.top_n:
        kinds["place"] = ColumnType.INTEGER
    if view.bounded:
        kinds |= {
            f"{view.bounded}_least": ColumnType.INTEGER,
            f"{view.bounded}_most": ColumnType.INTEGER,
        }
    wanted = columns(view, kinds, _types(db, table))
    try:
        db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {wanted} FROM {table}")
    except duckdb.Error as error:
        raise NotComputed(f"A value of {view.name} can't be computed: {short(error)}") from error


def short(error: object) -> str:
    """Return the first line of an error, truncated, since errors may quote values of any length."""
    line = (str(error).splitlines() or [""])[0]
    return line if len(line) <= ERROR_CHARS else f"{line[:ERROR_CHARS]}…"


def columns(view: View, kinds: Mapping[str, ColumnType], types: Mapping[str, str]) -> str:
    """Return SQL that selects the columns `kinds` of a view in normal form. `types` maps each
    column to its DuckDB type.

    Each type has a normal form. Other types are converted to it; a value that would lose
    information is an error:

    - integer: 128 bits. Also accepted: boolean (0 or 1), and whole numbers of other types or as
      text.
    - decimal: 28 digits before and 10 after the point. Also accepted: whole numbers, and text.
      Binary floating-point numbers are not accepted, since they are not exact.
    - float: a double. Also accepted: decimals, whole numbers, and text.
    - time: epoch milliseconds, rounded to the nearest. Also accepted: timestamps (in UTC unless
      they have a zone), and ISO 8601 text.
    - text: text only.

    Raises:
        WrongColumns: a column is missing or of a type that can't be compared.
    """
    if missing := [name for name in kinds if name not in types]:
        raise WrongColumns(
            f"{view.name} has no column {', '.join(missing)}; it has {', '.join(types)}."
        )
    return ", ".join(
        f'{_normal_form(view, name, kind, types[name])} AS "{name}"' for name, kind in kinds.items()
    )


def _types(db: "duckdb.DuckDBPyConnection", name: str) -> dict[str, str]:
    return {row[0]: row[1] for row in db.execute(f"DESCRIBE {name}").fetchall()}


def _normal_form(view: View, name: str, kind: ColumnType, type_: str) -> str:
    forms = {
        ColumnType.INTEGER: _integer,
        ColumnType.TEXT: _text,
        ColumnType.DECIMAL: _decimal,
        ColumnType.FLOAT: _float,
        ColumnType.TIME: _time,
    }
    if type_ == '"NULL"':  # DuckDB's type of a column that contains only nulls
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
    """Return SQL that is `then` if the condition is true, null if the column is null, and otherwise
    an error."""
    return (
        f"CASE WHEN {column} IS NULL THEN NULL WHEN {condition} THEN {then}"
        f" ELSE error(concat({column}, ' {complaint}')) END"
    )


def _if_matches(column: str, pattern: str, then: str, complaint: str) -> str:
    return _if(f"regexp_full_match({column}, '{pattern}')", then, column, complaint)


def _without_zones(table: "pyarrow.Table") -> "pyarrow.Table":
    """Convert the table's timestamps to UTC and drop their zones."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:
            plain = table.column(number).cast(pa.timestamp(field.type.unit))
            table = table.set_column(number, field.name, plain)
    return table


RELATIVE_ERROR = 1e-9
# Longer text is truncated in findings.
TEXT_CHARS = 1_000
# DuckDB can't format times further than this from the epoch.
CALENDAR_MS = 9 * 10**15


@dataclass(frozen=True)
class Compared:
    """Result of a comparison, in rows.

    `compared` is the number of rows that are expected or in the engine. Of these, `missing`,
    `extra` and `different` are wrong. `findings` contains the first wrong rows, with values
    formatted for people: times in ISO 8601, decimals without trailing zeros.
    """

    compared: int
    missing: int
    extra: int
    different: int
    findings: list[WrongRow]
    miscounted: Miscounted | None  # None: the view counts no messages, or all counts are right

    @property
    def right(self) -> bool:
        """True if the engine's rows are exactly the expected rows."""
        return not (self.missing or self.extra or self.different)


def compare(
    db: "duckdb.DuckDBPyConnection", view: View, delivered: "pyarrow.Table", most_findings: int
) -> Compared:
    """Compare an engine's rows of a view with the table `expected.<view>`.

    Raises:
        WrongColumns: the engine's rows lack a column, or a column can't be compared.
        NotComputed: an expected value can't be compared.
    """
    normalize_sources(db, f"expected.{view.name}", view, "expected_rows")
    normalize_engine(db, delivered, view, "engine_rows")
    db.execute(
        f"CREATE OR REPLACE TEMP TABLE judged AS {_judged(view, 'expected_rows', 'engine_rows')}"
    )
    counts = dict(db.execute("SELECT finding, count(*) FROM judged GROUP BY finding").fetchall())
    rows = db.execute(_shown(view), [most_findings]).fetchall()
    return Compared(
        compared=sum(counts.values()),
        missing=counts.get("missing", 0),
        extra=counts.get("extra", 0),
        different=counts.get("different", 0),
        findings=[WrongRow(finding=kind, source=source, engine=is_) for kind, source, is_ in rows],
        miscounted=_miscounted(db, view.counts) if view.counts else None,
    )


def _miscounted(db: "duckdb.DuckDBPyConnection", column: str) -> Miscounted | None:
    source, engine = (f'coalesce({side}."{column}", 0)' for side in ("source", "engine"))
    events, twice, lost = db.execute(f"""
        SELECT coalesce(sum({source}), 0)::BIGINT,
               coalesce(sum(greatest({engine} - {source}, 0)), 0)::BIGINT,
               coalesce(sum(greatest({source} - {engine}, 0)), 0)::BIGINT
        FROM judged""").fetchall()[0]
    if not (twice or lost):
        return None
    return Miscounted(events=events, twice=twice, lost=lost, still_counting=False)


def _judged(view: View, source: str, engine: str) -> str:
    """Return SQL with one row for each row that is expected or in the engine: the result
    (`finding`), and the expected row (`source`) and the engine's row (`engine`) as structs."""
    return f"""
        WITH side_by_side AS ({_side_by_side(view, source, engine)}),
             with_wanted AS (SELECT *, {_expected(view)} AS wanted FROM side_by_side)
        SELECT CASE WHEN source IS NULL THEN 'extra'
                    WHEN engine IS NULL THEN 'missing'
                    WHEN NOT wanted THEN 'extra'
                    WHEN {_equal(view)} THEN 'right'
                    ELSE 'different' END AS finding,
               source, engine
        FROM with_wanted
        WHERE engine IS NOT NULL OR wanted"""


def _side_by_side(view: View, source: str, engine: str) -> str:
    """Return SQL that joins expected rows and the engine's rows by key. Rows with the same key are
    numbered, and the number is part of the join, so a duplicate row has no partner."""
    key = ", ".join(f'"{name}"' for name in view.key)
    copy = f"row_number() OVER ({f'PARTITION BY {key}' if key else ''}) AS copy"
    same = [f's.source."{name}" IS NOT DISTINCT FROM e.engine."{name}"' for name in view.key]
    return f"""
        SELECT source, engine
        FROM (SELECT source, {copy} FROM {source} AS source) AS s
        FULL JOIN (SELECT engine, {copy} FROM {engine} AS engine) AS e
        ON {" AND ".join(["s.copy = e.copy", *same])}"""


def _expected(view: View) -> str:
    """Return an SQL condition: whether the view should contain this row of the source. If rows are
    tied for the last places of a top-n, only as many as there are places are expected; rows that
    the engine chose come first."""
    if view.window:
        return f'engine IS NOT NULL OR source."{view.window}_least" > 0'
    if not view.top_n:
        return "true"
    groups = ["source.place", *(f'source."{name}"' for name in view.top_n.per)]
    order = ["engine IS NULL", *(f'source."{name}"' for name in view.key)]
    return (
        f"row_number() OVER (PARTITION BY {', '.join(groups)} ORDER BY {', '.join(order)})"
        f" <= {view.top_n.limit} - source.place + 1"
    )


def _equal(view: View) -> str:
    return " AND ".join(_equal_column(view, name, kind) for name, kind in view.columns.items())


def _equal_column(view: View, name: str, kind: ColumnType) -> str:
    source, engine = f'source."{name}"', f'engine."{name}"'
    if name == view.bounded:
        least, most = f'source."{name}_least"', f'source."{name}_most"'
        return f"coalesce({engine} BETWEEN {least} AND {most}, false)"
    if kind is ColumnType.FLOAT:
        near = f"abs({source} - {engine}) <= {RELATIVE_ERROR} * abs({source})"
        return f"coalesce({near}, {source} IS NULL AND {engine} IS NULL)"
    return f"{source} IS NOT DISTINCT FROM {engine}"


def _shown(view: View) -> str:
    """Return SQL that selects the first wrong rows, with the fields of `WrongRow`."""
    return f"""
        SELECT finding,
               CASE WHEN source IS NOT NULL THEN {_row(view, "source")} END,
               CASE WHEN engine IS NOT NULL THEN {_row(view, "engine")} END
        FROM judged
        WHERE finding <> 'right'
        ORDER BY {", ".join([*_key_of_either(view), "finding"])}
        LIMIT ?"""


def _key_of_either(view: View) -> list[str]:
    return [f'coalesce(source."{name}", engine."{name}")' for name in view.key]


def _row(view: View, side: str) -> str:
    fields = (f'"{name}": {_value(view, name, kind, side)}' for name, kind in view.columns.items())
    return "{" + ", ".join(fields) + "}"


def _value(view: View, name: str, kind: ColumnType, side: str) -> str:
    column = f'{side}."{name}"'
    if name == view.bounded and side == "source":
        return f'concat(source."{name}_least", \' to \', source."{name}_most")'
    if kind is ColumnType.TIME:
        shown = f"strftime(make_timestamp_ms({column}), '%Y-%m-%dT%H:%M:%S.%gZ')"
        return (
            f"CASE WHEN {column} = {NO_TIME_MS} THEN 'no time, such as 0000-00-00'"
            f" WHEN {column} BETWEEN -{CALENDAR_MS} AND {CALENDAR_MS} THEN {shown}"
            f" WHEN {column} IS NOT NULL THEN concat({column}, ' ms') END"
        )
    if kind is ColumnType.TEXT:
        cut = f"concat({column}[:{TEXT_CHARS}], '… (', length({column}), ' characters)')"
        return f"CASE WHEN length({column}) > {TEXT_CHARS} THEN {cut} ELSE {column} END"
    if kind is ColumnType.DECIMAL:
        return f"rtrim(rtrim({column}::VARCHAR, '0'), '.')"
    return column
