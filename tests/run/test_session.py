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
from racetrack.probes.base import Probe
from racetrack.results.folder import RunFolder, read_run
from racetrack.run import faults, session
from racetrack.run.checks import services_of
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from tests.run.fakes import FakeEngine, FakeStack, SecondEngine


class Idle(Probe):
    """A probe that measures nothing, in place of those whose services do not exist here."""

    name = "Nothing"
    due = 0
    deleted: Mapping[str, int] = {}

    def __init__(self, *_: object) -> None:
        super().__init__()

    def run(self) -> None:
        self.stopping.wait()


class Generator:
    """The load generator's control port: records commands, and reports a few events."""

    commands: list[str]

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None: ...

    def ask(self, command: str, *, quietly: bool = False) -> str:
        self.commands.append(command)
        return "done"

    def pause(self) -> None:
        self.commands.append("pause")

    def settled_counts(self) -> dict[str, list[int]]:
        return {"handed": [4, 3], "refused": [0, 1]}


class Broker:
    """A fake broker that has all seven events."""

    def __init__(self, *_: object) -> None: ...

    def end_offsets(self) -> list[int]:
        return [4, 3]

    def end_offsets_reaching(self, _handed_over: list[int], _within_s: float) -> list[int]:
        return [4, 3]


class Drive:
    """A session with a fake engine on a fake stack."""

    def __init__(
        self,
        logs: Path,
        counted: int | None = 7,
        engine: Engine | None = None,
        **limits: Any,
    ) -> None:
        self.stack, self.engine = FakeStack(), engine or FakeEngine(counted)
        self.folder = RunFolder.create(logs, self.engine.name, "5")
        screen = Screen(Console(quiet=True))
        self.session = Session(
            self.engine,
            self.stack.as_stack(),
            self.folder,
            screen,
            0.1,
            **limits,
        )

    def start(self) -> None:
        self.session.start_stack()
        self.session.run_demo()


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Drive]]:
    """Return a function that makes sessions; stop each at the end, even if it was stopped."""
    made: list[Drive] = []
    Generator.commands = []
    for name, fake in {
        "ArrivalsProbe": Idle,
        "EndOffsetsProbe": Idle,
        "TopicsProbe": Idle,
        "TopicOffsets": Broker,
        "Control": Generator,
    }.items():
        monkeypatch.setattr(session, name, fake)
    monkeypatch.setattr(
        session, "check_writes", lambda *_: Generator.commands.append("check writes")
    )

    def make(**wanted: Any) -> Drive:
        made.append(Drive(tmp_path, **wanted))
        return made[-1]

    yield make
    for each in made:
        each.session.stop()


def test_the_stack_is_started_and_then_it_is_seen_whether_it_takes_writes(
    drive: Callable[..., Drive],
) -> None:
    at = drive()
    at.stack.unprepared = ("broker", "registry")
    at.session.start_stack()
    assert at.stack.did == [("start", " ".join(services_of(at.engine, load())))]
    at.session.set_rate(5_000)
    commands = ["check writes", "set events_per_second 5000", "check writes"]
    assert Generator.commands == commands
    run = read_run(at.folder.path)
    assert run.versions == {"mysql": "9"}
    assert "broker, registry" in run.caveats[0]  # a first run


class Waiting(FakeEngine):
    """An engine whose script itself waits for Debezium."""

    def demo_waits_for(self, settings: Settings) -> tuple[str, ...]:
        return ("debezium",)

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def load_demo(self, stack: Stack) -> None:
        self.began.set()
        super().load_demo(stack)


def test_a_demo_is_loaded_while_a_service_comes_up_that_it_waits_for_itself(
    drive: Callable[..., Drive],
) -> None:
    engine = Waiting()
    at = drive(engine=engine)
    at.stack.ready_after = {"debezium": engine.began}
    at.start()
    assert at.stack.did.count(("load", "demo")) == 1
    assert "total=7" in (at.folder.path / "fake_sample_dt.log").read_text()
    assert read_run(at.folder.path).versions["fake"] == "1"


class Refused(Waiting):
    """An engine that refuses the demo at once."""

    def load_demo(self, stack: Stack) -> None:
        super().load_demo(stack)
        raise DemoError("no such table")


@pytest.mark.slow
def test_a_demo_that_is_refused_early_ends_the_run(drive: Callable[..., Drive]) -> None:
    at = drive(engine=Refused())
    at.session.start_stack()
    with pytest.raises(DemoError, match="no such table"):
        at.session.run_demo()


@pytest.mark.slow
def test_an_engine_that_tells_no_progress_ends_the_run(
    drive: Callable[..., Drive],
) -> None:
    with pytest.raises(RacetrackError, match="Fake reported no progress within"):
        drive(counted=None, first_update_within_s=0.2).start()


def test_a_service_that_ends_while_time_passes_ends_the_run(drive: Callable[..., Drive]) -> None:
    at = drive()
    at.start()
    at.session.watch(0.01, "settling")
    at.stack.ended["broker"] = "exit code 1"
    with pytest.raises(RacetrackError, match="broker ended during the run: exit code 1"):
        at.session.watch(60, "settling")


def test_a_rate_that_is_steered_is_asked_for_and_what_comes_of_it_seen(
    drive: Callable[..., Drive],
) -> None:
    at = drive(counted=7)
    at.start()
    at.session.offer(123)
    assert Generator.commands[-1] == "set events_per_second 123"
    first, second = at.session.load_sample(), at.session.load_sample()
    assert first.counted == 7
    assert first.at_s <= second.at_s
    assert 0 < first.cpu_s <= second.cpu_s  # both fake services are this process


def test_a_wait_ends_when_what_is_waited_for_is_there_or_its_time_is_over(
    drive: Callable[..., Drive],
) -> None:
    at = drive()
    at.start()
    said: list[str] = []

    def progress() -> str:
        said.append("busy")
        return said[-1]

    assert at.session.wait_until(lambda: len(said) == 2, 20, "waiting", progress)
    assert len(said) == 2
    assert not at.session.wait_until(lambda: False, 0.1, "waiting", progress)


def test_an_engine_is_killed_after_the_window_once_it_has_counted_enough(
    drive: Callable[..., Drive],
) -> None:
    at = drive(engine=FakeEngine(needs=()), faults=[faults.parse("kill:engine@7 events")])
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


@pytest.mark.parametrize(("counted", "drained"), [(7, True), (6, False)])
def test_the_account_says_who_counted_what_once_the_load_is_paused(
    drive: Callable[..., Drive], counted: int, drained: bool
) -> None:
    at = drive(counted=counted, drain_within_s=20.0 if drained else 0.2)
    at.start()
    began_ms = 1000 * time.time() - 1
    counts = at.session.account()[at.engine.name]
    assert counts.paused_ms and began_ms <= counts.paused_ms
    assert Generator.commands[-1] == "pause"
    assert (counts.handed_over, counts.refused) == ((4, 3), (0, 1))
    assert counts.end_offsets == (4, 3)
    assert (counts.engine_total, counts.engine_drained) == (counted, drained)


@pytest.mark.slow
def test_each_engine_of_a_group_is_followed_into_its_own_folder(
    drive: Callable[..., Drive],
) -> None:
    at = drive(engine=EngineGroup([FakeEngine(7), SecondEngine(6)]), drain_within_s=0.2)
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
