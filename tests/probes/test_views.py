"""Tests that updates of an engine's views are recorded as they arrive, also after a kill."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from racetrack.engines.contract import Seen
from racetrack.errors import RacetrackError
from racetrack.probes.views import ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.workloads.contract import TracedView, find_workload

AT_MS = 1_795_000_000_000


class Telling:
    """An engine that reports these answers in turn; an error ends the reports."""

    title = "Teller"

    def __init__(self, *answers: Seen | Exception) -> None:
        self._answers = list(answers)
        self.followed: list[Sequence[TracedView]] = []
        self.ended = threading.Event()

    def traced_views(self, settings: Any) -> Sequence[TracedView]:
        return find_workload(settings.workload).traced_views

    def seen(
        self, _stack: object, traced: Sequence[TracedView], _stop: threading.Event
    ) -> Iterator[Seen]:
        self.followed.append(traced)
        while self._answers:
            answer = self._answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            yield answer
        self.ended.set()


class Shop:
    """The part of a stack that the probe uses."""

    class settings:  # noqa: N801
        workload = "shop"


def rows_of(engine: Telling, folder: RunFolder, *, is_outage_expected: bool = False) -> list[str]:
    given: Any = engine
    stack: Any = Shop
    away_until_s = time.monotonic() + (0.2 if is_outage_expected else 0)
    probe = ViewsProbe(given, stack, folder, lambda since_s: since_s < away_until_s)
    probe.start()
    while not engine.ended.wait(0.01):
        probe.check()
    probe.stop()
    probe.check()
    return (folder.path / "views.csv").read_text().splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "teller", "1")


def test_each_change_is_a_row(folder: RunFolder) -> None:
    engine = Telling(Seen(AT_MS, "a.b", 0, 7), Seen(AT_MS + 5, "a.c", 2, AT_MS))
    assert rows_of(engine, folder) == [
        "at_ms,view,partition,value",
        f"{AT_MS},a.b,0,7",
        f"{AT_MS + 5},a.c,2,{AT_MS}",
    ]
    assert engine.followed == [find_workload("shop").traced_views]


def test_an_engine_that_fails_is_not_listened_to_any_more(folder: RunFolder) -> None:
    with pytest.raises(RacetrackError, match="The views of Teller can't be read any more: gone"):
        rows_of(Telling(RacetrackError("gone")), folder)


def test_one_that_was_killed_on_purpose_is_asked_again(folder: RunFolder) -> None:
    engine = Telling(RacetrackError("gone"), Seen(AT_MS, "a.b", 0, 7))
    assert rows_of(engine, folder, is_outage_expected=True)[1:] == [f"{AT_MS},a.b,0,7"]
    assert len(engine.followed) == 2
