"""Judges what an engine holds against the sources of a shop that was made up."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from racetrack.verify import sources
from racetrack.verify.compare import Compared, compare
from racetrack.workload import View
from workloads.shop.harness import WORKLOAD
from workloads.shop.tests.shop import Shop

Judge = Callable[[Shop, dict[str, pa.Table]], dict[str, Compared]]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database, as the harness opens it."""
    with sources.open_database(WORKLOAD, tmp_path / "spill") as opened:
        yield opened


@pytest.fixture
def judge(db: duckdb.DuckDBPyConnection) -> Judge:
    """(the true shop, what the engine holds by view) → what was found, by view."""

    def judged(truth: Shop, held: dict[str, pa.Table]) -> dict[str, Compared]:
        load(db, truth)
        for view in WORKLOAD.views:
            sources.expect(db, WORKLOAD, view)
        return {name: compare(db, WORKLOAD.view(name), table, 5) for name, table in held.items()}

    return judged


def load(db: duckdb.DuckDBPyConnection, shop: Shop) -> None:
    """Put a shop where the harness puts what it has read."""
    for view in WORKLOAD.table_views():
        sources.take_table(db, view, rows_of(shop, view))
    load_topics(db, shop)
    sources.between(db, shop.now_ms, shop.now_ms)


def load_topics(db: duckdb.DuckDBPyConnection, shop: Shop) -> None:
    """The topics' part of it."""
    if shop.pageviews:
        db.register("messages", pa.Table.from_pylist(shop.pageviews))
        db.execute("INSERT INTO source.pageviews BY NAME SELECT * FROM messages")
    for flag in shop.flags:
        db.execute("INSERT INTO source.dd_flagged_profiles VALUES (?)", [flag])


def rows_of(shop: Shop, view: View) -> list[list[Any]]:
    """A table's rows as PyMySQL has them."""
    rows = getattr(shop, view.name)
    return [[_as_in_mysql(row[name]) for name in view.columns] for row in rows]


def _as_in_mysql(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
