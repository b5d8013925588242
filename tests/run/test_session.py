"""Tests of a session from its start to its end: all is recorded, failures end it, nothing is
left."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from racetrack.config import Settings, load
from racetrack.engines.contract import DemoError, Engine
from racetrack.engines.group import EngineGroup
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes import refused_input
from racetrack.probes.base import Probe
from racetrack.results.folder import RunFolder, read_run
from racetrack.run import faults, session
from racetrack.run.checks import services_of
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from tests.run.fakes import FakeControl, FakeEngine, FakeOffsets, FakeStack, SecondEngine


class Idle(Probe):
    """A probe that measures nothing, in place of those whose services do not exist here."""

    name = "Nothing"
    due = 0
    deleted: Mapping[str, int] = {}

    def __init__(self, *_: object) -> None:
        super().__init__()

    def run(self) -> None:
        self.stopping.wait()


class Drive:
    """A session with a fake engine on a fake stack. `commands` are those to the generator."""

    def __init__(self, logs: Path, commands: list[str], engine: Engine, **limits: Any) -> None:
        self.stack, self.engine, self.commands = FakeStack(), engine, commands
        self.folder = RunFolder.create(logs, engine.name, "5")
        screen, stack = Screen(Console(quiet=True)), self.stack.as_stack()
        self.session = Session(engine, stack, self.folder, screen, 0.1, **limits)

    def start(self) -> None:
        self.session.start_stack()
        self.session.run_demo()


MakeDrive = Callable[..., Drive]


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDrive]:
    """Return a function that makes sessions; stop each at the end, even if it was stopped."""
    made: list[Drive] = []
    control = FakeControl()
    for name in ("ArrivalsProbe", "EndOffsetsProbe", "TopicsProbe"):
        monkeypatch.setattr(session, name, Idle)
    for name in ("LOOK_EVERY_S", "ASK_EVERY_S"):
        monkeypatch.setattr(session, name, 0.01)
    monkeypatch.setattr(session, "TopicOffsets", lambda *_: FakeOffsets())
    monkeypatch.setattr(session, "Control", lambda *_: control)
    monkeypatch.setattr(refused_input, "explain", lambda *_: "")  # there is no broker to ask
    monkeypatch.setattr(session, "check_writes", lambda *_: control.did.append("check writes"))

    def make(engine: Engine | None = None, **limits: Any) -> Drive:
        made.append(Drive(tmp_path, control.did, engine or FakeEngine(), **limits))
        return made[-1]

    yield make
    for each in made:
        each.session.stop()


def test_the_stack_is_started_and_then_it_is_seen_whether_it_takes_writes(drive: MakeDrive) -> None:
    at = drive()
    at.stack.unprepared = ("broker", "registry")
    at.session.start_stack()
    assert at.stack.did == [("start", " ".join(services_of(at.engine, load())))]
    at.session.set_rate(5_000)
    assert at.commands == ["check writes", "ask set events_per_second 5000", "check writes"]
    run = read_run(at.folder.path)
    assert run.versions == {"mysql": "9"}
    assert "broker, registry" in run.caveats[0]  # a first run


class Waiting(FakeEngine):
    """An engine whose script itself waits for Debezium."""

    refuses = False

    def demo_waits_for(self, settings: Settings) -> tuple[str, ...]:
        return ("debezium",)

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def load_demo(self, stack: Stack) -> None:
        self.began.set()
        super().load_demo(stack)
        if self.refuses:
            raise DemoError("no such table")


def test_a_demo_is_loaded_while_a_service_comes_up_that_it_waits_for_itself(
    drive: MakeDrive,
) -> None:
    engine = Waiting()
    at = drive(engine)
    at.stack.ready_after = {"debezium": engine.began}
    at.start()
    assert at.stack.did.count(("load", "demo")) == 1
    assert "total=7" in (at.folder.path / "fake_sample_dt.log").read_text()
    assert read_run(at.folder.path).versions["fake"] == "1"


def test_a_demo_that_is_refused_early_and_an_engine_without_progress_end_the_run(
    drive: MakeDrive,
) -> None:
    engine = Waiting()
    engine.refuses = True
    with pytest.raises(DemoError, match="no such table"):
        drive(engine).start()
    with pytest.raises(RacetrackError, match="Fake reported no progress within"):
        drive(FakeEngine(counted=None), first_update_within_s=0.2).start()


def test_a_service_that_ends_while_time_passes_ends_the_run(drive: MakeDrive) -> None:
    at = drive()
    at.start()
    at.session.watch(0.01, "settling")
    at.stack.ended["broker"] = "exit code 1"
    with pytest.raises(RacetrackError, match="broker ended during the run: exit code 1"):
        at.session.watch(60, "settling")


def test_a_rate_that_is_steered_is_asked_for_and_what_comes_of_it_seen(drive: MakeDrive) -> None:
    at = drive()
    at.start()
    at.session.offer(123)
    assert at.commands[-1] == "ask set events_per_second 123"
    first, second = at.session.load_sample(), at.session.load_sample()
    assert first.counted == 7
    assert first.at_s <= second.at_s
    assert 0 < first.cpu_s <= second.cpu_s  # both fake services are this process


@pytest.mark.slow
def test_an_engine_is_killed_after_the_window_once_it_has_counted_enough(drive: MakeDrive) -> None:
    at = drive(FakeEngine(needs=()), faults=[faults.parse("kill:engine@7 events")])
    at.start()
    at.session.begin_faults()
    measured = at.session.sample(2, 17)

    def has_restarted() -> bool:
        log = read_run(at.folder.path).faults
        return bool(log and log.done and log.done[0].until_ms)

    assert at.session.wait_until(has_restarted, 60.0, "waiting for the restart")
    log = read_run(at.folder.path).faults
    assert log and log.done[0].counted == 7
    assert log.done[0].at_ms >= measured.window.end_ms
    assert ("kill", "worker") in at.stack.did and ("restart", "worker") in at.stack.did


def test_the_account_says_who_counted_what_once_the_load_is_paused(drive: MakeDrive) -> None:
    at = drive()
    at.start()
    began_ms = 1000 * time.time() - 1
    counts = at.session.account()[at.engine.name]
    assert counts.paused_ms and began_ms <= counts.paused_ms
    assert at.commands[-1] == "pause"
    assert (counts.handed_over, counts.refused) == ((4, 3), (0, 1))
    assert counts.end_offsets == (4, 3)
    assert (counts.engine_total, counts.engine_drained) == (7, True)


@pytest.mark.slow
def test_each_engine_of_a_group_is_followed_into_its_own_folder(drive: MakeDrive) -> None:
    at = drive(EngineGroup([FakeEngine(7), SecondEngine(6)]), drain_within_s=0.2)
    at.start()
    assert at.stack.did.count(("load", "demo")) == 2
    for name, count in (("fake", 7), ("second", 6)):
        own = at.folder.of(name).path
        assert f"total={count}" in (own / f"{name}_sample_dt.log").read_text()
        assert read_run(own).versions == {"mysql": "9", "fake": "1", "second": "1"}
    assert at.session.load_sample().counted == 6
    counts = at.session.account()
    assert counts["fake"].engine_drained
    assert (counts["second"].engine_total, counts["second"].engine_drained) == (6, False)
    at.stack.ended["other"] = "exit code 3"
    with pytest.raises(EngineFailed, match="other ended during the run: exit code 3"):
        at.session.check()
