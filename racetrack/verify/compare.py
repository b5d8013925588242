"""What an engine's view holds against what it should hold: rows missing, extra and different."""
# ruff: noqa: S608 - SQL is put together from names of the workload only

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from racetrack.verify import normal
from racetrack.workloads.contract import ColumnType, View

if TYPE_CHECKING:
    import duckdb
    import pyarrow

RELATIVE_ERROR = 1e-9
# Longer text is cut where it is shown.
TEXT_CHARS = 1_000
# Milliseconds beyond which DuckDB knows no calendar.
CALENDAR_MS = 9 * 10**15

Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A row that is not right: `missing`, `extra` or `different`, and what each side has of it.

    Values are as people read them: times ISO 8601, decimals without trailing zeros.
    """

    finding: str
    source: Row | None
    engine: Row | None


@dataclass(frozen=True)
class Miscounted:
    """Messages of the main topic, by a view that counts them: how many the sources have, and of
    these how many the engine has too many, and too few, row by row."""

    events: int
    twice: int
    lost: int


@dataclass(frozen=True)
class Compared:
    """A view against its sources, in rows.

    `compared` are those that the sources demand and those that the engine has, taken together; what
    is neither missing nor extra nor different is right. `findings` are the first of the others.
    """

    compared: int
    missing: int
    extra: int
    different: int
    findings: list[Finding]
    miscounted: Miscounted | None  # None: it counts none, or all are right

    @property
    def right(self) -> bool:
        """Every row is as the sources say, and no other is there."""
        return not (self.missing or self.extra or self.different)


def compare(
    db: "duckdb.DuckDBPyConnection", view: View, delivered: "pyarrow.Table", most_findings: int
) -> Compared:
    """Compare what an engine delivered of a view with the table `expected.<view>`.

    Raises:
        WrongColumns: what it delivered lacks a column, or one can't be compared.
        NotComputed: what it should hold can't be.
    """
    normal.of_sources(db, f"expected.{view.name}", view, "demanded")
    normal.of_engine(db, delivered, view, "held")
    db.execute(f"CREATE OR REPLACE TEMP TABLE judged AS {_judged(view, 'demanded', 'held')}")
    counts = dict(db.execute("SELECT finding, count(*) FROM judged GROUP BY finding").fetchall())
    rows = db.execute(_shown(view), [most_findings]).fetchall()
    return Compared(
        compared=sum(counts.values()),
        missing=counts.get("missing", 0),
        extra=counts.get("extra", 0),
        different=counts.get("different", 0),
        findings=[Finding(*row) for row in rows],
        miscounted=_miscounted(db, view.counts) if view.counts else None,
    )


def _miscounted(db: "duckdb.DuckDBPyConnection", column: str) -> Miscounted | None:
    source, engine = (f'coalesce({side}."{column}", 0)' for side in ("source", "engine"))
    events, twice, lost = db.execute(f"""
        SELECT coalesce(sum({source}), 0)::BIGINT,
               coalesce(sum(greatest({engine} - {source}, 0)), 0)::BIGINT,
               coalesce(sum(greatest({source} - {engine}, 0)), 0)::BIGINT
        FROM judged""").fetchall()[0]
    return Miscounted(events, twice, lost) if twice or lost else None


def _judged(view: View, source: str, engine: str) -> str:
    """A row for each that is wanted or there: `finding`, `source` and `engine`, the latter two as
    structs."""
    return f"""
        WITH side_by_side AS ({_side_by_side(view, source, engine)}),
             with_wanted AS (SELECT *, {_wanted(view)} AS wanted FROM side_by_side)
        SELECT CASE WHEN source IS NULL THEN 'extra'
                    WHEN engine IS NULL THEN 'missing'
                    WHEN NOT wanted THEN 'extra'
                    WHEN {_equal(view)} THEN 'right'
                    ELSE 'different' END AS finding,
               source, engine
        FROM with_wanted
        WHERE engine IS NOT NULL OR wanted"""


def _side_by_side(view: View, source: str, engine: str) -> str:
    """Rows of equal keys beside each other. A second row of a key finds no partner, so that what
    is there twice is found."""
    key = ", ".join(f'"{name}"' for name in view.key)
    copy = f"row_number() OVER ({f'PARTITION BY {key}' if key else ''}) AS copy"
    same = [f's.source."{name}" IS NOT DISTINCT FROM e.engine."{name}"' for name in view.key]
    return f"""
        SELECT source, engine
        FROM (SELECT source, {copy} FROM {source} AS source) AS s
        FULL JOIN (SELECT engine, {copy} FROM {engine} AS engine) AS e
        ON {" AND ".join(["s.copy = e.copy", *same])}"""


def _wanted(view: View) -> str:
    """Whether the view has to hold a row of the source, or may. Of those that share the last place
    within the limit, as many as there is room for, those first that the engine has chosen."""
    if view.window:
        return f'engine IS NOT NULL OR source."{view.window}_least" > 0'
    if not view.top_n:
        return "true"
    groups = ["source.place", *([f'source."{view.top_n.per}"'] if view.top_n.per else [])]
    order = ["engine IS NULL", *(f'source."{name}"' for name in view.key)]
    return (
        f"row_number() OVER (PARTITION BY {', '.join(groups)} ORDER BY {', '.join(order)})"
        f" <= {view.top_n.limit} - source.place + 1"
    )


def _equal(view: View) -> str:
    return " AND ".join(_equal_column(view, name, kind) for name, kind in view.columns.items())


def _equal_column(view: View, name: str, kind: ColumnType) -> str:
    source, engine = f'source."{name}"', f'engine."{name}"'
    if name == view.window:
        least, most = f'source."{name}_least"', f'source."{name}_most"'
        return f"coalesce({engine} BETWEEN {least} AND {most}, false)"
    if kind is ColumnType.FLOAT:
        near = f"abs({source} - {engine}) <= {RELATIVE_ERROR} * abs({source})"
        return f"coalesce({near}, {source} IS NULL AND {engine} IS NULL)"
    return f"{source} IS NOT DISTINCT FROM {engine}"


def _shown(view: View) -> str:
    """SQL for the first rows that are not right, as Finding holds them."""
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
    if name == view.window and side == "source":
        return f'concat(source."{name}_least", \' to \', source."{name}_most")'
    if kind is ColumnType.TIME:
        shown = f"strftime(make_timestamp_ms({column}), '%Y-%m-%dT%H:%M:%S.%gZ')"
        return (
            f"CASE WHEN {column} = {normal.NO_TIME_MS} THEN 'no time, such as 0000-00-00'"
            f" WHEN {column} BETWEEN -{CALENDAR_MS} AND {CALENDAR_MS} THEN {shown}"
            f" WHEN {column} IS NOT NULL THEN concat({column}, ' ms') END"
        )
    if kind is ColumnType.TEXT:
        cut = f"concat({column}[:{TEXT_CHARS}], '… (', length({column}), ' characters)')"
        return f"CASE WHEN length({column}) > {TEXT_CHARS} THEN {cut} ELSE {column} END"
    if kind is ColumnType.DECIMAL:
        return f"rtrim(rtrim({column}::VARCHAR, '0'), '.')"
    return column
