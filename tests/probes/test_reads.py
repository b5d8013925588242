"""Who reads the views is a process of its own; when it ends, the run is told why."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from engines.contract import Engine
from racetrack.errors import RacetrackError
from racetrack.probes.reads import FILE, ReadsProbe
from racetrack.runfolder import RunFolder
from racetrack.settings import Settings, load
from racetrack.stack.contract import Endpoints, Stack

WITHIN_S = 20.0


@dataclass(frozen=True)
class NobodysEngine:
    """One that no folder is named after."""

    name: str = "nobodys"

    def services_in(self, settings: Settings) -> tuple[str, ...]:
        return ()

    def namespace(self, settings: Settings) -> str:
        return ""


@dataclass(frozen=True)
class NoStack:
    settings: Settings
    endpoints: Endpoints


@pytest.fixture
def probe(tmp_path: Path) -> ReadsProbe:
    folder = RunFolder.create(tmp_path, "nobodys", "100")
    nowhere = Endpoints("127.0.0.1:1", "http://127.0.0.1:2", "127.0.0.1", 3, "127.0.0.1", 4)
    stack = NoStack(load({"READS_PER_SECOND": "2"}), nowhere)
    return ReadsProbe(cast(Engine, NobodysEngine()), cast(Stack, stack), folder)


def test_a_reader_that_ends_is_told_with_its_last_words(probe: ReadsProbe) -> None:
    probe.start()
    give_up = time.monotonic() + WITHIN_S
    with pytest.raises(RacetrackError, match=r"(?s)reader says can't be read any more.*nobodys"):
        while time.monotonic() < give_up:
            probe.check()
            probe.stopping.wait(0.05)
    assert probe.pids == []
    probe.stop()


def test_it_ends_its_process_when_it_is_stopped(probe: ReadsProbe, tmp_path: Path) -> None:
    probe.start()
    probe.stop()
    assert probe.pids == []
    probe.check()
    assert [path.name for path in tmp_path.rglob(FILE)] == [FILE]
