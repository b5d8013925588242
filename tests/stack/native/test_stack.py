"""Tests of a native stack's start, also while parts are being installed, and of its end."""

import os
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from racetrack import environment, terminal
from racetrack.config import Settings, load
from racetrack.errors import SetupError
from racetrack.stack import processes, resources
from racetrack.stack.contract import Say
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.service import Context, Launch, NativeService, NotReady
from tests.waiting import wait_until

WITHIN_S = 10.0


class Parts:
    """Fake parts of an installation, each of which exists once the test says so. If the test never
    does, the installation fails."""

    def __init__(self, *names: str) -> None:
        self.futures: dict[str, Future[Path]] = {name: Future() for name in names}

    @contextmanager
    def fetch(
        self, parts: Sequence[str], _versions: Mapping[str, str], _say: Say
    ) -> Iterator[Mapping[str, Future[Path]]]:
        give_up = threading.Timer(WITHIN_S, self.fail_those_that_did_not_come)
        give_up.start()
        try:
            yield {name: self.futures[name] for name in parts}
        finally:
            give_up.cancel()

    def come(self, name: str) -> None:
        if not self.futures[name].done():
            self.futures[name].set_result(Path("/parts") / name)

    def fail_those_that_did_not_come(self) -> None:
        for name, future in self.futures.items():
            if not future.done():
                future.set_exception(SetupError(f"{name} did not come"))


@dataclass
class Service:
    """A fake service: a process that waits, with one part. `on_check` is called at each check."""

    name: str
    part: str
    ready_within_s: float = WITHIN_S
    after: tuple[str, ...] = ()
    launched: threading.Event = field(default_factory=threading.Event)
    faster: "Faster | None" = None

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.part,)

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        assert context.parts[self.part] == Path("/parts") / self.part
        self.launched.set()
        return Launch(["sleep", "1000"], cwd=context.work, faster=self.faster)

    def check(self, context: Context) -> None:
        self.on_check()

    def on_check(self) -> None: ...

    def versions(self, context: Context) -> Mapping[str, str]:
        return {}


@dataclass
class Faster:
    """A fake of what speeds up a service's later starts. It is made once, while its peers run."""

    peers: tuple[str, ...]
    peers_up: list[list[int]] = field(default_factory=list)
    stack: NativeStack | None = None

    def exists(self, parts: Mapping[str, Path]) -> bool:
        return bool(self.peers_up)

    def make(self, context: Context) -> None:
        assert self.stack
        self.peers_up += self.stack.pids(self.peers).values()


@pytest.fixture
def parts() -> Parts:
    return Parts("a", "b")


@pytest.fixture
def name() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


def stack_of(name: str, parts: Parts, *services: Service) -> NativeStack:
    found = {service.name: cast(NativeService, service) for service in services}
    return NativeStack(load({"STACK_NAME": name}), found.__getitem__, parts.fetch)


def test_a_service_starts_as_soon_as_its_own_part_is_there(name: str, parts: Parts) -> None:
    class First(Service):
        def on_check(self) -> None:
            parts.come("b")

    first, second = First("first", "a"), Service("second", "b")
    stack = stack_of(name, parts, first, second)
    parts.come("a")
    said: list[str] = []
    try:
        stack.start(["first", "second"], None, said.append)
        assert all(stack.pids(["first", "second"]).values())
    finally:
        stack.stop(said.append)
    assert any("first ready" in line for line in said), said


def test_the_time_to_get_ready_begins_when_all_parts_are_there(name: str, parts: Parts) -> None:
    class WaitsForSecond(Service):
        first_asked = 0.0

        def on_check(self) -> None:
            self.first_asked = self.first_asked or time.monotonic()
            if time.monotonic() - self.first_asked > 2 * self.ready_within_s:
                parts.come("b")
            if not second.launched.is_set():
                raise NotReady("the second is missing")

    first, second = WaitsForSecond("first", "a", ready_within_s=0.5), Service("second", "b")
    stack = stack_of(name, parts, first, second)
    parts.come("a")
    try:
        stack.start(["first", "second"], None, print)
    finally:
        stack.stop(print)


def test_a_part_that_can_not_be_had_ends_what_was_started(name: str, parts: Parts) -> None:
    class First(Service):
        def on_check(self) -> None:
            parts.fail_those_that_did_not_come()

    stack = stack_of(name, parts, First("first", "a"), Service("second", "b"))
    parts.come("a")
    with pytest.raises(SetupError, match="b did not come"):
        stack.start(["first", "second"], None, print)
    assert processes.members(name) == []
    stack.stop(print)


def test_what_makes_a_start_faster_is_made_after_the_end(name: str, parts: Parts) -> None:
    faster = Faster(peers=("peer",))
    services = Service("it", "a", faster=faster), Service("peer", "b")
    stack = faster.stack = stack_of(name, parts, *services)
    parts.come("a")
    parts.come("b")
    said: list[str] = []
    stack.start(["it", "peer"], None, said.append)
    stack.stop(said.append)
    assert not faster.peers_up, "never before the end"
    said.clear()
    stack.speed_up_next_start(said.append)
    ((peer,),) = faster.peers_up
    assert not psutil.pid_exists(peer)
    assert processes.members(name) == []
    assert "it" in said[0]
    assert "Ctrl-C leaves it for the next run" in said[0]
    said.clear()
    stack.speed_up_next_start(said.append)
    assert said == [], "once"


def test_what_is_not_found_by_its_mark_is_ended_all_the_same(name: str, parts: Parts) -> None:
    class Unmarked(Service):
        def launch(self, context: Context) -> Launch:
            return Launch(["env", "-i", "sleep", "1000"], cwd=context.work)

    stack = stack_of(name, parts, Unmarked("it", "a"))
    parts.come("a")
    stack.start(["it"], None, print)
    ((pid,),) = stack.pids(["it"]).values()
    wait_until(lambda: psutil.Process(pid).name() == "sleep", "program without the mark")
    stack.stop(print)
    assert not psutil.pid_exists(pid)


def test_data_on_disk_is_said_and_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.settle()  # the user's shell may allow fewer open files than a stack needs
    monkeypatch.setattr(processes, "SHM", tmp_path / "missing")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stack = NativeStack(load({"STACK_NAME": f"test-{uuid.uuid4().hex[:8]}"}))
    assert stack.data_in_memory == resources.is_on_tmpfs(tmp_path)
    (folder,) = stack.data_folders()
    assert folder.path == tmp_path
    assert folder.name == str(resources.mount_point(tmp_path))
    if not stack.data_in_memory:
        stack.prepare([], print)
        assert f"Data is on disk, in {tmp_path}: {tmp_path}/missing is too small" in (
            capsys.readouterr().out
        )
        assert "set TMPDIR" in folder.remedy


@pytest.mark.slow
def test_a_signal_while_threads_start_leaves_no_data(name: str) -> None:
    class Writer(Service):
        def launch(self, context: Context) -> Launch:
            for number in range(20):
                (context.work / "data" / str(number)).mkdir(parents=True)
                time.sleep(0.01)  # as a copy of a large folder takes time
            return super().launch(context)

    class SignalSoon(Parts):
        @contextmanager
        def fetch(self, *given: Any) -> Iterator[Mapping[str, Future[Path]]]:
            with super().fetch(*given) as parts:
                threading.Timer(after_s, os.kill, [os.getpid(), signal.SIGINT]).start()
                yield parts

    for after_ms in 3 * [*range(2, 10)]:  # some of them hit the start of a thread
        after_s, parts = after_ms / 1000, SignalSoon("a")
        parts.come("a")
        services = [Writer(f"service-{number}", "a") for number in range(40)]
        stack = stack_of(name, parts, *services)
        with pytest.raises(terminal.Interrupted), terminal.guarded(print):
            stack.start([service.name for service in services], None, print)
            # A finalizer may have dropped the signal, which the guard then raises again.
            threading.Event().wait(WITHIN_S)
        stack.stop(print)
        for thread in threading.enumerate():  # a thread whose start was broken off never starts
            if thread.name.startswith("ThreadPoolExecutor") and thread.is_alive():
                thread.join(WITHIN_S)
        assert not processes.work_root(name).exists()
