"""`./race verify`: the load pauses while views are compared, and continues in any case."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from racetrack.errors import RacetrackError
from racetrack.results.verification import Verified
from racetrack.stack.contract import RunningStack
from tests.cli.conftest import invoke
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, WRONG
from tests.run.made_up import MadeUpEngine, MadeUpStack

RATES = {"pageviews": 500.0}


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


def verify(**views: dict[str, Any]) -> Result:
    """Run `./race verify` on a fake stack; the load is afterwards as it was before."""
    generator = Generator()
    up = RunningStack("native", "made-up", "shop", "2026-11-22T08:00:00Z", [], {})
    result = invoke(
        "verify",
        find_engine=lambda _: MadeUpEngine(),
        running_stack=lambda _: (MadeUpStack(), up),
        Control=lambda *_: generator,
        TopicOffsets=lambda *_: Broker(),
        Verification=lambda *_: Verification(views),
    )
    assert generator.did == ["pause", RATES]
    return result


def test_the_findings_are_recorded(tmp_path: Path) -> None:
    result = verify(users=RIGHT)
    assert result.exit_code == 0, result.output
    assert "Made Up: every view is right" in result.output
    (file,) = tmp_path.glob("logs/*_UTC_made-up_verify/verified.json")
    assert json.loads(file.read_text())["views"]["users"]["status"] == "right"


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ({"users": RIGHT, "items": WRONG}, "items"),
        ({"users": ABSENT, "items": ABSENT}, "the demo is not loaded there.\n  IDE: there"),
        ({}, "a source can't be read"),
    ],
)
def test_a_wrong_view_no_view_and_a_failure_have_exit_code_1(
    views: dict[str, dict[str, Any]], says: str
) -> None:
    result = verify(**views)
    assert result.exit_code == 1
    assert says in result.output


def test_without_a_stack_there_is_nothing_to_verify() -> None:
    result = invoke("verify", running_stack=lambda _: None)
    assert result.exit_code == 2
    assert "No stack is up" in result.output
