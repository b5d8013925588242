"""What is followed of a run depends on what was asked for, and on what the engine has."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from engines.contract import Engine
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.run import followed
from racetrack.runfolder import RunFolder
from racetrack.settings import Settings, load
from racetrack.stack.contract import Endpoints, Stack

NOWHERE = Endpoints("127.0.0.1:1", "http://127.0.0.1:2", "127.0.0.1", 3, "127.0.0.1", 4)


@dataclass(frozen=True)
class OneEngine:
    needs: tuple[str, ...] = ("registry", "debezium")
    name: str = "swift"
    title: str = "Swift"

    def services_in(self, settings: Settings) -> tuple[str, ...]:
        return ()

    def namespace(self, settings: Settings) -> str:
        return ""


@dataclass(frozen=True)
class OneStack:
    settings: Settings
    endpoints: Endpoints = field(default=NOWHERE)


def excused_by(*_services: str) -> Callable[[float], bool]:
    return lambda _since_s: False


def names(
    folder: Path, engine: OneEngine | None = None, *, has_faults: bool = False, **settings: str
) -> list[str]:
    """The probes' classes."""
    found = followed.probes(
        cast(Engine, engine or OneEngine()),
        cast(Stack, OneStack(load(settings))),
        RunFolder.create(folder, "swift", "100"),
        cast(ArrivalsProbe, None),
        excused_by,
        has_faults=has_faults,
    )
    return [type(probe).__name__ for probe in found]


def test_nothing_is_followed_that_was_not_asked_for(tmp_path: Path) -> None:
    assert names(tmp_path) == []


def test_marks_are_followed_in_views_and_on_their_way_through_cdc(tmp_path: Path) -> None:
    assert names(tmp_path, MARKS_PER_SECOND="12") == ["ViewsProbe", "PurchasesProbe"]


def test_reads_are_made_where_they_are_asked_for(tmp_path: Path) -> None:
    assert names(tmp_path, READS_PER_SECOND="2") == ["ReadsProbe"]


@pytest.mark.parametrize(("needs", "expected"), [((), []), (("debezium",), ["PurchasesProbe"])])
def test_faults_have_cdc_followed_if_there_is_any(
    tmp_path: Path, needs: tuple[str, ...], expected: list[str]
) -> None:
    assert names(tmp_path, OneEngine(needs), has_faults=True) == expected
