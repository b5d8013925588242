"""Tests of the conversion of every engine's types to one form: losses that are accepted, and values
that are refused."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from racetrack.verify import compare
from racetrack.workloads.contract import DECIMAL, FLOAT, INTEGER, TEXT, TIME, ColumnType, View

AT = datetime(2026, 3, 22, 5, 4, 28, 123_000, tzinfo=UTC)
AT_MS = 1_774_155_868_123


def in_one_form(db: duckdb.DuckDBPyConnection, kind: ColumnType, column: pa.Array) -> list[Any]:
    compare.normalize_engine(db, pa.table({"x": column}), View("v", ("x",), {"x": kind}), "taken")
    return [row[0] for row in db.execute("SELECT x FROM taken").fetchall()]


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        (INTEGER, pa.array([7], pa.uint64()), 7),
        (INTEGER, pa.array([True]), 1),
        (INTEGER, pa.array([2**64 - 1], pa.uint64()), 2**64 - 1),
        (INTEGER, pa.array([Decimal("7.00")]), 7),
        (INTEGER, pa.array([7.0]), 7),
        (INTEGER, pa.array(["-7"]), -7),
        (TEXT, pa.array(["a"]), "a"),
        (TEXT, pa.array(["a"]).dictionary_encode(), "a"),
        (
            DECIMAL,
            pa.array([Decimal("12345678901234567890.12")]),
            Decimal("12345678901234567890.12"),
        ),
        (DECIMAL, pa.array(["0.10"]), Decimal("0.1")),
        (DECIMAL, pa.array([3]), Decimal(3)),
        (FLOAT, pa.array([0.5], pa.float32()), 0.5),
        (FLOAT, pa.array([Decimal("0.25")]), 0.25),
        (TIME, pa.array([AT_MS]), AT_MS),
        (TIME, pa.array([Decimal(AT_MS)]), AT_MS),
        (TIME, pa.array([AT_MS + 0.2]), AT_MS),
        (TIME, pa.array([AT], pa.timestamp("ns", "UTC")), AT_MS),
        (TIME, pa.array([AT], pa.timestamp("us", "Europe/Zurich")), AT_MS),
        (TIME, pa.array([AT.replace(tzinfo=None)], pa.timestamp("ms")), AT_MS),
        (TIME, pa.array([AT + timedelta(microseconds=400)]), AT_MS),
        (TIME, pa.array([AT.isoformat()]), AT_MS),
        (TIME, pa.array([AT.astimezone(timezone(timedelta(hours=2))).isoformat()]), AT_MS),
        (TIME, pa.array(["2026-03-22T05:04:28.123Z"]), AT_MS),
        (TIME, pa.array(["2026-03-22 05:04:28.123"]), AT_MS),
    ],
)
def test_what_an_engine_may_deliver(
    db: duckdb.DuckDBPyConnection, kind: ColumnType, column: pa.Array, value: object
) -> None:
    assert in_one_form(db, kind, column) == [value]
    assert in_one_form(db, kind, pa.concat_arrays([pa.nulls(1, column.type), column])) == [
        None,
        value,
    ]


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (INTEGER, pa.array([0.5])),
        (INTEGER, pa.array(["1.5"])),
        (INTEGER, pa.array([Decimal("1.5")])),
        (TEXT, pa.array([1])),
        (DECIMAL, pa.array([0.5])),
        (DECIMAL, pa.array(["1e3"])),
        (DECIMAL, pa.array([Decimal("0.12345678901")])),
        (DECIMAL, pa.array(["0.12345678901"])),
        (FLOAT, pa.array(["half"])),
        (TIME, pa.array([True])),
        (TIME, pa.array(["yesterday"])),
    ],
)
def test_what_it_may_not(db: duckdb.DuckDBPyConnection, kind: ColumnType, column: pa.Array) -> None:
    with pytest.raises(compare.WrongColumns):
        in_one_form(db, kind, column)


def test_a_column_that_is_not_there_is_named(db: duckdb.DuckDBPyConnection) -> None:
    view = View("some_view", ("x",), {"x": INTEGER, "y": TEXT})
    with pytest.raises(compare.WrongColumns, match="some_view has no column y; it has x"):
        compare.normalize_engine(db, pa.table({"x": [1]}), view, "taken")
