"""Tests of a native stack's start, also while parts are being installed, and of its end."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from racetrack import environment, terminal
from racetrack.config import load
from racetrack.errors import SetupError
from racetrack.stack import processes, resources
from racetrack.stack.contract import Say
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.service import Context, Launch, NotReady
from tests.stack.fake_service import FakeService
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


Open = Callable[..., NativeStack]


@pytest.fixture
def opened(stack_name: str, parts: Parts) -> Iterator[Open]:
    """Return a function that returns a stack of these services; stop it at the end."""
    stacks: list[NativeStack] = []

    def open_stack(*services: FakeService) -> NativeStack:
        found = {service.name: service for service in services}
        settings = load({"STACK_NAME": stack_name})
        stacks.append(NativeStack(settings, found.__getitem__, parts.fetch))
        return stacks[-1]

    yield open_stack
    for stack in stacks:
        stack.stop(print)


@pytest.mark.slow
def test_a_service_starts_as_soon_as_its_own_part_is_there(opened: Open, parts: Parts) -> None:
    class First(FakeService):
        def check(self, context: Context) -> None:
            super().check(context)
            parts.come("b")

    stack = opened(First("first", parts=("a",)), FakeService("second", parts=("b",)))
    parts.come("a")
    said: list[str] = []
    stack.start(["first", "second"], None, said.append)
    assert all(stack.pids(["first", "second"]).values())
    assert any("first ready" in line for line in said), said


@pytest.mark.slow
def test_the_time_to_get_ready_begins_when_all_parts_are_there(opened: Open, parts: Parts) -> None:
    class WaitsForSecond(FakeService):
        first_asked = 0.0

        def check(self, context: Context) -> None:
            self.first_asked = self.first_asked or time.monotonic()
            if time.monotonic() - self.first_asked > 2 * self.ready_within_s:
                parts.come("b")
            if not second.launched:
                raise NotReady("the second is missing")

    first = WaitsForSecond("first", parts=("a",), ready_within_s=0.5)
    second = FakeService("second", parts=("b",))
    parts.come("a")
    opened(first, second).start(["first", "second"], None, print)


def test_a_part_that_can_not_be_had_ends_what_was_started(
    opened: Open, parts: Parts, stack_name: str
) -> None:
    class First(FakeService):
        def check(self, context: Context) -> None:
            parts.fail_those_that_did_not_come()

    stack = opened(First("first", parts=("a",)), FakeService("second", parts=("b",)))
    parts.come("a")
    with pytest.raises(SetupError, match="b did not come"):
        stack.start(["first", "second"], None, print)
    assert processes.members(stack_name) == []


@pytest.mark.slow
def test_what_makes_a_start_faster_is_made_after_the_end(opened: Open, stack_name: str) -> None:
    faster = Faster(peers=("peer",))
    stack = faster.stack = opened(FakeService("it", faster=faster), FakeService("peer"))
    said: list[str] = []
    stack.start(["it", "peer"], None, said.append)
    stack.stop(said.append)
    assert not faster.peers_up, "never before the end"
    said.clear()
    stack.speed_up_next_start(said.append)
    ((peer,),) = faster.peers_up
    assert not psutil.pid_exists(peer)
    assert processes.members(stack_name) == []
    assert "it" in said[0]
    said.clear()
    stack.speed_up_next_start(said.append)
    assert said == [], "once"


@pytest.mark.slow
def test_what_is_not_found_by_its_mark_is_ended_all_the_same(opened: Open) -> None:
    stack = opened(FakeService("it", "touch up; exec env -i sleep 1000"))
    stack.start(["it"], None, print)
    ((pid,),) = stack.pids(["it"]).values()
    wait_until(lambda: psutil.Process(pid).name() == "sleep", "program without the mark")
    stack.stop(print)
    assert not psutil.pid_exists(pid)


def test_data_on_disk_is_said_and_known(
    tmp_path: Path,
    stack_name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment.settle()  # the user's shell may allow fewer open files than a stack needs
    monkeypatch.setattr(processes, "SHM", tmp_path / "missing")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stack = NativeStack(load({"STACK_NAME": stack_name}))
    assert stack.data_in_memory == resources.is_on_tmpfs(tmp_path)
    (folder,) = stack.data_folders()
    assert folder.path == tmp_path
    assert folder.name == str(resources.mount_point(tmp_path))
    if not stack.data_in_memory:
        stack.prepare([], print)
        assert f"Data is on disk, in {tmp_path}" in capsys.readouterr().out
        assert "set TMPDIR" in folder.remedy


@pytest.mark.slow
def test_a_signal_while_threads_start_leaves_no_data(stack_name: str) -> None:
    class Writer(FakeService):
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
        after_s = after_ms / 1000
        services = {name: Writer(name) for name in map("service-{}".format, range(40))}
        settings = load({"STACK_NAME": stack_name})
        stack = NativeStack(settings, services.__getitem__, SignalSoon().fetch)
        with pytest.raises(terminal.Interrupted), terminal.guarded(print):
            stack.start([*services], None, print)
            # A finalizer may have dropped the signal, which the guard then raises again.
            threading.Event().wait(WITHIN_S)
        stack.stop(print)
        for thread in threading.enumerate():  # a thread whose start was broken off never starts
            if thread.name.startswith("ThreadPoolExecutor") and thread.is_alive():
                thread.join(WITHIN_S)
        assert not processes.work_root(stack_name).exists()
