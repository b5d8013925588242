"""`./race verify`: the load pauses while views are compared, and continues in any case."""

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from racetrack.cli.outputs import Output
from racetrack.cli.stack import report_verified, verify_views
from racetrack.errors import RacetrackError
from racetrack.results.verification import Verified
from racetrack.terminal import Screen
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, WRONG
from tests.run.fakes import FakeEngine, FakeStack

if TYPE_CHECKING:
    from racetrack.probes.broker import TopicOffsets
    from racetrack.probes.loadgen import Control

RATES = {"events": 500.0}


class Generator:
    """A control server that records when the load pauses and continues."""

    def __init__(self) -> None:
        self.did: list[object] = []

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None: ...

    def pause(self) -> Mapping[str, float]:
        self.did.append("pause")
        return RATES

    def settled_counts(self) -> dict[str, list[int]]:
        return {"handed": [4, 3], "refused": [0, 0]}

    def resume(self, rates: Mapping[str, float]) -> None:
        self.did.append(rates)


class Broker:
    """Has everything that was handed over."""

    def end_offsets_reaching(self, handed_over: list[int], _within_s: float) -> list[int]:
        return handed_over


class Verification:
    """Finds these views, or fails if there are none."""

    def __init__(self, views: Mapping[str, dict[str, Any]]) -> None:
        self._views = views

    def run(self) -> Verified:
        if not self._views:
            raise RacetrackError("a source can't be read")
        return Verified.model_validate(verified(**self._views))


def verify(
    folder: Path, *, files: dict[str, str] | None = None, **views: dict[str, Any]
) -> tuple[str | None, str]:
    """Verify a fake stack, write `files`, and check that the load is as it was before. Return the
    names of wrong views, and the printed lines."""
    output = io.StringIO()
    screen, generator = Screen(Console(file=output, width=200)), Generator()
    engine, stack = FakeEngine(), FakeStack().as_stack()
    try:
        found = verify_views(
            engine,
            stack,
            cast("Control", generator),
            cast("TopicOffsets", Broker()),
            lambda *_: cast("Any", Verification(views)),
            folder,
            screen,
        )
    finally:
        assert generator.did == ["pause", RATES]
    wrong = report_verified(engine, stack, found, folder, screen, Output(files or {}))
    return wrong, output.getvalue()


def test_the_findings_are_recorded(tmp_path: Path) -> None:
    wrong, printed = verify(tmp_path, users=RIGHT)
    assert not wrong
    assert "Fake: every view is right" in printed
    recorded = json.loads((tmp_path / "verified.json").read_text())
    assert recorded["views"]["users"]["status"] == "right"


def test_a_wrong_view_is_named(tmp_path: Path) -> None:
    wrong, printed = verify(tmp_path, users=RIGHT, items=WRONG)
    assert wrong and "items" in wrong
    assert "items" in printed


def test_each_view_is_a_flat_record(tmp_path: Path) -> None:
    names = ("json", "csv", "markdown")
    files = {name: str(tmp_path / f"views.{name}") for name in names}
    verify(tmp_path, files=files, users=RIGHT, items=WRONG, hvu_test=ABSENT)
    exported = json.loads(Path(files["json"]).read_text())
    assert exported["kind"] == "verification"
    records = {record["view"]: record for record in exported["records"]}
    assert {name: of["status"] for name, of in records.items()} == {
        "users": "right",
        "items": "wrong",
        "hvu_test": "absent",
    }
    items = records["items"]
    assert (items["engine"], items["tag"]) == ("fake", tmp_path.name)
    assert (items["compared"], items["missing"], items["extra"], items["different"]) == (7, 0, 0, 1)
    assert len(Path(files["csv"]).read_text().splitlines()) == 1 + 3
    assert "| items | wrong | 7 | 0 | 0 | 1 |" in Path(files["markdown"]).read_text()


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
        verify(tmp_path, **views)
