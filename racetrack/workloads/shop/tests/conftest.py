"""Fixtures that compare an engine's views with the sources of a synthetic shop."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from racetrack.verify import sources
from racetrack.verify.compare import Compared, compare
from racetrack.workloads.contract import View
from racetrack.workloads.shop.harness import WORKLOAD
from racetrack.workloads.shop.tests import shop
from racetrack.workloads.shop.tests.shop import Shop

MOST_FINDINGS = 5
Judge = Callable[[Shop, dict[str, pa.Table]], dict[str, Compared]]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database as the harness does."""
    with sources.open_database(WORKLOAD, tmp_path / "spill") as opened:
        yield opened


@pytest.fixture
def judge(db: duckdb.DuckDBPyConnection) -> Judge:
    """Return a function that compares an engine's views with the true shop, and returns the
    findings for each view."""

    def judged(truth: Shop, found: dict[str, pa.Table]) -> dict[str, Compared]:
        load(db, truth)
        expect_all(db)
        return {
            name: compare(db, WORKLOAD.view(name), table, MOST_FINDINGS)
            for name, table in found.items()
        }

    return judged


class Faultless:
    """A shop that is loaded into the database, and the rows of a correct engine, for tests to
    alter."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        truth = shop.make()
        self.views = shop.views(truth)
        self._db = db
        load(db, truth)
        expect_all(db)

    def judge(self, view: str, found: pa.Table) -> Compared:
        """Return the findings if the engine's view has these rows."""
        return compare(self._db, WORKLOAD.view(view), found, MOST_FINDINGS)


@pytest.fixture(scope="module")
def faultless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faultless]:
    with sources.open_database(WORKLOAD, tmp_path_factory.mktemp("spill")) as opened:
        yield Faultless(opened)


def expect_all(db: duckdb.DuckDBPyConnection) -> None:
    """Compute the expected content of every view from the loaded sources."""
    for view in WORKLOAD.views:
        sources.expect(db, WORKLOAD, view)


def load(db: duckdb.DuckDBPyConnection, made: Shop) -> None:
    """Load a shop's tables and topics into the database."""
    for view in WORKLOAD.table_views():
        sources.take_table(db, view, rows_of(made, view))
    load_topics(db, made)
    sources.between(db, made.now_ms, made.now_ms)


def load_topics(db: duckdb.DuckDBPyConnection, made: Shop) -> None:
    """Load only the shop's topics into the database."""
    if made.pageviews:
        db.register("messages", pa.Table.from_pylist(made.pageviews))
        db.execute("INSERT INTO source.pageviews BY NAME SELECT * FROM messages")
    for flag in made.flags:
        db.execute("INSERT INTO source.dd_flagged_profiles VALUES (?)", [flag])


def rows_of(made: Shop, view: View) -> list[list[Any]]:
    """Return a table's rows as PyMySQL returns them."""
    rows = getattr(made, view.name)
    return [[_as_in_mysql(row[name]) for name in view.columns] for row in rows]


def _as_in_mysql(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
