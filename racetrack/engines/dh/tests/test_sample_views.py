"""Tests of scripts/sample_views.py with a fake Deephaven: the followed rows and the output."""

import re
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import load
from racetrack.engines.dh import engine as dh
from racetrack.engines.dh.tests.test_sample_dt import Server, Update, server

__all__ = ["server"]  # a fixture

SCRIPT = Path(__file__).resolve().parents[4] / "scripts" / "sample_views.py"
SEEN = re.compile(
    r"^RACETRACK seen timestamp=\d{13}, view=([\w.]+), partition=(\d), value=(\d+)$", re.M
)


class Table:
    """A fake of the demo's tables. Its name describes the operations that made it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def where(self, condition: str) -> "Table":
        return Table(f"{self.name} where {condition}")

    def view(self, columns: list[str]) -> str:
        return f"{self.name}: {', '.join(columns)}"


@pytest.fixture
def listening(server: Server) -> dict[str, Any]:
    """Return the listeners of the traced views, by the name of the table that each listens to."""
    for name in ("item_summary", "profile_views_enriched"):
        server.variables[name] = Table(name)
    server.variables["traced_views"] = dh.describe_traced_views(load())
    exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), server.variables)  # noqa: S102
    return {table: found for table, (found, _) in server.listening.items() if ": " in table}


def test_it_listens_to_the_tracer_rows_of_each_view(listening: dict[str, Any]) -> None:
    items = "item_summary where item_id >= 1001 && item_id <= 1006"
    owners = "profile_views_enriched where owner_id >= 10001 && owner_id <= 10006"
    assert list(listening) == [
        f"{items}: partition = (int) (item_id - 1001), value = pageviews",
        f"{items}: partition = (int) (item_id - 1001), value = orders",
        f"{owners}: partition = (int) (owner_id - 10001), value = epochMillis(received_at)",
    ]


def test_it_reports_each_partition_that_got_more(listening: dict[str, Any], server: Server) -> None:
    _, orders, newest = listening.values()
    orders(Update({"partition": [0, 2], "value": [3, 4]}, {}), True)
    orders(Update({}, {"partition": [2, 1], "value": [5, 1]}), False)
    # This view has ten rows for each profile, in any order; only a newer time is reported.
    newest(Update({"partition": [1, 1, 1], "value": [20, 40, 30]}, {}), True)
    newest(Update({"partition": [1], "value": [35]}, {}), False)
    assert SEEN.findall(server.output) == [
        ("item_summary.orders", "0", "3"),
        ("item_summary.orders", "2", "4"),
        ("item_summary.orders", "1", "1"),
        ("item_summary.orders", "2", "5"),
        ("profile_views_enriched.received_at", "1", "40"),
    ]
