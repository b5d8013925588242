"""`./race verify`: the load pauses while views are compared and goes on whatever was found."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from racetrack import cli, engines
from racetrack.errors import RacetrackError
from racetrack.probes import broker, loadgen
from racetrack.results.verification import Verified
from racetrack.stack import runtime
from racetrack.stack.contract import RunningStack
from racetrack.verify import verification
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, WRONG
from tests.run.made_up import MadeUpEngine, MadeUpStack

RATES = {"pageviews": 500.0}


class Generator:
    """A control port that notes when the load pauses and goes on."""

    did: list[object]

    def __init__(self, *_: object) -> None: ...

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
    """It has all that was handed over."""

    def __init__(self, *_: object) -> None: ...

    def end_offsets_reaching(self, handed_over: list[int], _within_s: float) -> list[int]:
        return handed_over


class Found:
    """A verification that finds this, or fails."""

    views: dict[str, dict[str, Any]]

    def __init__(self, *_: object) -> None: ...

    def run(self) -> Verified:
        if not self.views:
            raise RacetrackError("a source can't be read")
        return Verified.model_validate(verified(**self.views))


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A stack stands, and the load is as it was when the command has ended."""
    Generator.did = []
    standing = (
        MadeUpStack(),
        RunningStack("native", "made-up", "shop", "2026-11-22T08:00:00Z", [], {}),
    )
    monkeypatch.setenv("LOGS_FOLDER", str(tmp_path))
    monkeypatch.setattr(engines, "find_engine", lambda _: MadeUpEngine())
    monkeypatch.setattr(runtime, "running_stack", lambda _: standing)
    monkeypatch.setattr(loadgen, "Control", Generator)
    monkeypatch.setattr(broker, "TopicOffsets", Broker)
    monkeypatch.setattr(verification, "Verification", Found)
    yield
    assert Generator.did == ["pause", RATES]


def verify(**views: dict[str, Any]) -> Result:
    Found.views = views
    return CliRunner().invoke(cli.race, ["verify"])


def test_views_that_are_right(up: None, tmp_path: Path) -> None:
    result = verify(users=RIGHT)
    assert result.exit_code == 0, result.output
    assert "Made Up: every view is right" in result.output
    (file,) = tmp_path.glob("*_UTC_made-up_verify/verified.json")
    assert json.loads(file.read_text())["views"]["users"]["status"] == "right"


def test_a_view_that_is_wrong_fails_it(up: None) -> None:
    result = verify(users=RIGHT, items=WRONG)
    assert result.exit_code == 1
    assert "items" in result.output


def test_without_the_demo_it_says_how_to_load_it(up: None) -> None:
    result = verify(users=ABSENT, items=ABSENT)
    assert result.exit_code == 1
    assert "the demo is not loaded there.\n  IDE: there" in result.output


def test_a_verification_that_fails_leaves_the_load_as_it_was(up: None) -> None:
    result = verify()
    assert result.exit_code == 1
    assert "a source can't be read" in result.output


def test_without_a_stack_there_is_nothing_to_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "running_stack", lambda _: None)
    result = verify(users=RIGHT)
    assert result.exit_code == 2
    assert "No stack is up" in result.output
