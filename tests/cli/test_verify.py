"""`./race verify`: the load pauses while views are compared, and continues in any case."""

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from racetrack.cli.outputs import Output
from racetrack.cli.stack import report_verified, verify_views
from racetrack.errors import RacetrackError
from racetrack.results.verification import Verified
from racetrack.terminal import Screen
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, WRONG
from tests.run.fakes import FakeControl, FakeEngine, FakeOffsets, FakeStack


def verify(folder: Path, output: Output, **views: dict[str, Any]) -> tuple[str | None, str]:
    """Verify a fake stack with these views, none of which is a failure, and check that the load is
    as it was before. Return the names of wrong views, and the printed lines."""
    printed = io.StringIO()
    screen, engine, stack = Screen(Console(file=printed)), FakeEngine(), FakeStack().as_stack()
    control: Any = FakeControl()
    offsets = cast(Any, FakeOffsets())

    def run() -> Verified:
        if not views:
            raise RacetrackError("a source can't be read")
        return Verified.model_validate(verified(**views))

    made = cast(Any, SimpleNamespace(run=run))
    try:
        found = verify_views(engine, stack, control, offsets, lambda *_: made, folder, screen)
    finally:
        assert control.did == ["pause", "resume {'events': 500.0}"]
    return report_verified(engine, stack, found, folder, screen, output), printed.getvalue()


def test_a_wrong_view_is_named_and_each_view_is_a_flat_record(tmp_path: Path) -> None:
    file, table = tmp_path / "views.json", tmp_path / "views.md"
    output = Output({"json": str(file), "markdown": str(table)})
    wrong, printed = verify(tmp_path, output, users=RIGHT, items=WRONG, hvu_test=ABSENT)
    assert wrong and "items" in wrong and "items" in printed
    recorded = json.loads((tmp_path / "verified.json").read_text())
    assert recorded["views"]["users"]["status"] == "right"
    exported = json.loads(file.read_text())
    assert exported["kind"] == "verification"
    records = {record["view"]: record for record in exported["records"]}
    statuses = {name: of["status"] for name, of in records.items()}
    assert statuses == {"users": "right", "items": "wrong", "hvu_test": "absent"}
    items = records["items"]
    assert (items["engine"], items["tag"]) == ("fake", tmp_path.name)
    assert (items["compared"], items["missing"], items["extra"], items["different"]) == (7, 0, 0, 1)
    assert "| items | wrong | 7 | 0 | 0 | 1 |" in table.read_text()


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ({"users": ABSENT, "items": ABSENT}, "the demo is not loaded there.\n  IDE: there"),
        ({}, "a source can't be read"),
    ],
)
def test_no_view_and_a_failure_are_errors(
    tmp_path: Path, views: dict[str, dict[str, Any]], says: str
) -> None:
    with pytest.raises(RacetrackError, match=re.escape(says)):
        verify(tmp_path, Output({}), **views)
