"""Tests of a native stack's start, also while parts are being installed, and of its end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from racetrack import terminal
from racetrack.config import load
from racetrack.errors import SetupError
from racetrack.stack import processes
from racetrack.stack.contract import Say
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.service import Context, Launch
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
def test_what_is_not_found_by_its_mark_is_ended_all_the_same(opened: Open) -> None:
    stack = opened(FakeService("it", "touch up; exec env -i sleep 1000"))
    stack.start(["it"], None, print)
    ((pid,),) = stack.pids(["it"]).values()
    wait_until(lambda: psutil.Process(pid).name() == "sleep", "program without the mark")
    stack.stop(print)
    assert not psutil.pid_exists(pid)


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
