"""Contract of all stacks: the same tests run with processes and with fake containers."""

import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil
import pytest

from racetrack.config import load
from racetrack.errors import BusyError, RacetrackError
from racetrack.stack import processes
from racetrack.stack.compose.stack import ComposeStack
from racetrack.stack.containers import called
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.service import Context, Launch, NativeService
from racetrack.stack.stack import SupervisedStack
from racetrack.stack.supervisor import ServiceError
from tests.stack.compose.fake_containers import FakeContainers
from tests.stack.fake_service import FakeService
from tests.waiting import wait_until

SERVICES = ("mysql", "broker", "registry", "loadgen")
GONE, RUNS, PAUSED = "gone", "runs", "paused"


class AfterBroker(FakeService):
    """A service that must be launched once the broker is ready."""

    def launch(self, context: Context) -> Launch:
        assert (context.work.parent / "broker" / "up").exists()
        return super().launch(context)


class Rig(Protocol):
    """A runtime with programs that do nothing: the stack as another process would open it, what the
    runtime itself reports of a service, an end without the stack's knowledge, and a service that
    ends as soon as it is started."""

    def open(self) -> SupervisedStack: ...
    def state(self, service: str) -> str: ...
    def end(self, service: str) -> None: ...
    def let_fail(self, service: str) -> None: ...


class Processes:
    """Services as real processes."""

    def __init__(self, name: str, _folder: Path) -> None:
        self._name = name
        self._programs = {service: FakeService(service) for service in SERVICES}
        self._programs["registry"] = AfterBroker("registry", after=("broker",))

    @contextmanager
    def _fetch(self, *_: object) -> Iterator[Mapping[str, Future[Path]]]:
        yield {}

    def _find(self, service: str) -> NativeService:
        return self._programs[service]

    def open(self) -> SupervisedStack:
        return NativeStack(load({"STACK_NAME": self._name}), self._find, self._fetch)

    def _process(self, service: str) -> psutil.Process | None:
        here = processes.members(self._name)
        return next((member.process for member in here if member.service == service), None)

    def state(self, service: str) -> str:
        if not (process := self._process(service)) or not processes.lives(process):
            return GONE
        return PAUSED if process.status() == psutil.STATUS_STOPPED else RUNS

    def end(self, service: str) -> None:
        process = self._process(service)
        assert process
        os.kill(process.pid, signal.SIGKILL)

    def let_fail(self, service: str) -> None:
        self._programs[service].script = 'echo "$0 has begun"; exit 3'


class Containers:
    """Services as fake containers, in which the broker is also the registry."""

    def __init__(self, name: str, folder: Path) -> None:
        self._settings = load({"STACK_NAME": name, "RUNTIME": "compose", "AIRGAP": "false"})
        self._fake = FakeContainers(folder, name, ("mysql", "redpanda", "loadgen"))

    def open(self) -> SupervisedStack:
        return ComposeStack(self._settings, self._fake.engine())

    def state(self, service: str) -> str:
        state = self._fake.state(called(service))
        return {"running": RUNS, "paused": PAUSED}.get(state, GONE)

    def end(self, service: str) -> None:
        self._fake.change(called(service), "exited", 9)

    def let_fail(self, service: str) -> None:
        self._fake.failing(called(service))


@pytest.fixture(params=[Processes, Containers], ids=["native", "compose"])
def rig(
    request: pytest.FixtureRequest,
    stack_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rig]:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    rig: Rig = request.param(stack_name, tmp_path)
    yield rig
    rig.open().stop(print)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return the folder for logs in a run's folder."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run/stack"


@pytest.fixture
def reported() -> tuple[list[str], list[str]]:
    """Return the lines that a start prints, and the services that it reports ready."""
    return [], []


@pytest.fixture
def stack(rig: Rig, logs: Path, reported: tuple[list[str], list[str]]) -> Iterator[SupervisedStack]:
    """Return a started stack; stop it at the end."""
    stack, (lines, ready) = rig.open(), reported
    stack.prepare(SERVICES, print)
    stack.start(SERVICES, logs, lines.append, ready.append)
    yield stack
    stack.stop(print)


def has_begun(log: Path) -> bool:
    return log.exists() and "has begun" in log.read_text()


def states(rig: Rig) -> set[str]:
    return {rig.state(service) for service in SERVICES}


@pytest.mark.slow
def test_every_service_is_reported_ready_and_has_a_log(
    rig: Rig, stack: SupervisedStack, logs: Path, reported: tuple[list[str], list[str]]
) -> None:
    lines, ready = reported
    assert sorted(ready) == sorted(SERVICES)
    assert states(rig) == {RUNS}
    for service in stack.apart(SERVICES):
        assert any(f"{service} ready after" in line for line in lines), lines
        assert stack.log_of(service).parent == logs
        wait_until(partial(has_begun, stack.log_of(service)), "log", 10)
    assert stack.versions()
    assert stack.died() == {}
    stack.stop(print)
    assert states(rig) == {GONE}


@pytest.mark.slow
def test_one_that_does_not_start_is_named_with_the_end_of_its_log(rig: Rig, logs: Path) -> None:
    rig.let_fail("loadgen")
    stack = rig.open()
    stack.prepare(SERVICES, print)
    with pytest.raises(ServiceError, match=r"(?s)^loadgen .*\b3\b.*loadgen has begun"):
        stack.start(SERVICES, logs, print)
    stack.stop(print)
    assert states(rig) == {GONE}


@pytest.mark.slow
def test_only_one_that_ends_by_itself_is_reported_with_the_end_of_its_log(
    rig: Rig, stack: SupervisedStack
) -> None:
    stack.kill(["loadgen"])
    assert rig.state("loadgen") == GONE
    assert stack.died() == {} and stack.pids(["loadgen"]) == {"loadgen": []}
    stack.restart("loadgen")
    assert rig.state("loadgen") == RUNS and stack.died() == {}
    rig.end("broker")
    wait_until(lambda: stack.died().keys() == {"broker"}, "report of its end", 10)
    rig.end("loadgen")
    wait_until(lambda: stack.died().keys() == {"broker", "loadgen"}, "report of its end", 10)
    assert all("has begun" in why for why in stack.died().values())


def test_one_that_would_lose_its_data_is_not_killed(rig: Rig, stack: SupervisedStack) -> None:
    if stack.survives_kill("mysql"):
        stack.kill(["mysql"])
        assert rig.state("mysql") == GONE
        return
    with pytest.raises(RacetrackError, match="mysql"):
        stack.kill(["loadgen", "mysql"])
    assert states(rig) == {RUNS}


@pytest.mark.slow
def test_a_paused_service_stands_still_and_goes_on(rig: Rig, stack: SupervisedStack) -> None:
    stack.pause("mysql")
    wait_until(lambda: rig.state("mysql") == PAUSED, "pause", 10)
    assert stack.died() == {}
    stack.resume("mysql")
    wait_until(lambda: rig.state("mysql") == RUNS, "end of the pause", 10)


@pytest.mark.slow
def test_a_stack_that_is_left_running_is_seen_and_stopped_by_others(
    rig: Rig, stack: SupervisedStack
) -> None:
    other = rig.open()
    assert other.running() is None  # it is not marked as left running
    stack.leave_running("some")
    running = other.running()
    assert running and (running.runtime, running.engine) == (stack.runtime, "some")
    assert running.services.keys() == {*stack.apart(SERVICES)} == {*running.expected}
    with pytest.raises(BusyError, match=r"`./race up some`.*`./race down`"):
        other.prepare(SERVICES, print)
    lines: list[str] = []
    other.stop(lines.append)
    assert states(rig) == {GONE} and other.running() is None
    assert len(lines) == 1 and "mysql" in lines[0]
    other.stop(lines.append)
    assert len(lines) == 1, "there was nothing more to stop"


@pytest.mark.slow
def test_what_a_killed_run_left_is_cleared(rig: Rig, stack: SupervisedStack) -> None:
    stack.leave_running("some")  # ends its watchdog
    (stack.root / "up.json").unlink()
    lines: list[str] = []
    rig.open().prepare(SERVICES, lines.append)
    assert states(rig) == {GONE} and not stack.root.exists()
    assert [line for line in lines if line.startswith("Cleared") and "mysql" in line]


@pytest.mark.slow
def test_a_stack_of_which_nothing_lives_does_not_run(rig: Rig, stack: SupervisedStack) -> None:
    stack.leave_running("some")
    for service in stack.apart(SERVICES):
        rig.end(service)
    wait_until(lambda: rig.open().running() is None, "end", 10)
    rig.open().prepare(SERVICES, print)
