"""Tests that the watchdog ends only what a killed harness leaves, and that it ends itself when it
is dismissed."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from racetrack.config import REPO
from racetrack.errors import BusyError, RacetrackError
from racetrack.stack import processes, watchdog_process
from racetrack.stack.lifetime import Watchdog
from tests.waiting import wait_until

# A small harness: a watchdog, a service, another child that survives it, and then the given code.
HARNESS = """
import os, subprocess, sys
from pathlib import Path
from racetrack.stack import processes
from racetrack.stack.service import Launch, spawn
from racetrack.stack.lifetime import Watchdog

name, folder, then = sys.argv[1:]
dog = Watchdog("native", name)
dog.begin(Path(folder), print)
processes.work_root(name).mkdir()
spawn(Launch(["sleep", "600"]), None, processes.mark(name, "broker"))
other = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, start_new_session=True)
print(other.pid, flush=True)
exec(then)
sys.stdin.read()
os._exit(0)
"""


class Harness:
    """A small harness that is running."""

    def __init__(self, name: str, folder: Path, then: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HARNESS, name, str(folder), then],
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout
        self.bystander = psutil.Process(int(self.process.stdout.readline()))


@pytest.fixture
def harness(stack_name: str, tmp_path: Path) -> Iterator[Callable[..., Harness]]:
    started: list[Harness] = []

    def start(then: str = "") -> Harness:
        started.append(Harness(stack_name, tmp_path, then))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.bystander.kill()
    Watchdog("native", stack_name).wait_for_last(print)


def watchdogs(stack_name: str) -> list[psutil.Process]:
    marks = {"racetrack.stack.watchdog_process", stack_name}
    return [process for process in psutil.process_iter() if marks <= {*_words(process)}]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def kill(small: Harness) -> None:
    os.kill(small.process.pid, signal.SIGKILL)


def kill_group(small: Harness) -> None:
    os.killpg(small.process.pid, signal.SIGKILL)


def end_without_a_word(small: Harness) -> None:
    assert small.process.stdin
    small.process.stdin.close()
    assert small.process.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "outcome", "reported"),
    [
        (kill, "unfinished", "the harness was killed"),
        (kill_group, "unfinished", "the harness was killed"),
        (end_without_a_word, "unfinished", "the harness was killed"),
        (kill, "ok", "ok"),  # an outcome that was reached stays
    ],
)
def test_what_a_harness_leaves_is_ended_and_its_run_is_reported(
    harness: Callable[..., Harness],
    stack_name: str,
    tmp_path: Path,
    end: Callable[[Harness], None],
    outcome: str,
    reported: str,
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"outcome": outcome, "engine": "steady"}))
    small = harness()
    assert [member.service for member in processes.members(stack_name)] == ["broker"]
    end(small)
    Watchdog("native", stack_name).wait_for_last(print)
    assert processes.members(stack_name) == []
    assert not processes.work_root(stack_name).exists()
    record = json.loads((tmp_path / "run.json").read_text())
    assert record == {"outcome": reported, "engine": "steady"}
    found = (tmp_path / "start.log").read_text()
    assert found.startswith("The harness was killed; ended 1 processes (broker) and the data in ")
    # The other child is no service, and has inherited no open file that the watchdog waits for.
    assert small.bystander.is_running()


@pytest.mark.slow
def test_one_that_was_dismissed_leaves_all_alone(
    harness: Callable[..., Harness], stack_name: str, tmp_path: Path
) -> None:
    small = harness("dog.dismiss(); print('dismissed', flush=True)")
    assert small.process.stdout
    assert small.process.stdout.readline() == "dismissed\n"
    assert watchdogs(stack_name) == []
    small.process.kill()
    small.process.wait()
    assert [member.service for member in processes.members(stack_name)] == ["broker"]
    assert not (tmp_path / "start.log").exists()


@pytest.mark.slow
def test_the_next_waits_for_one_that_is_at_work_and_says_whom_for(
    harness: Callable[..., Harness], stack_name: str
) -> None:
    harness()
    (at_work,) = watchdogs(stack_name)
    lines: list[str] = []
    with pytest.raises(BusyError, match=rf"`kill -9 {at_work.pid}`"):
        Watchdog("native", stack_name, clears_within_s=0.2).begin(None, lines.append)
    assert len(lines) == 1
    assert "Waiting for the watchdog of a run that was killed" in lines[0]


# Limits with which a clean-up ends at once.
AT_ONCE = {"look_every_s": 0.0, "quiet_s": 0.05}


def cleaning(*looks: str | Exception | None) -> Callable[[str], str | None]:
    """Return a clean-up that finds these one after the other, or fails; then nothing."""
    left = iter(looks)

    def clear(name: str) -> str | None:
        assert name == "some"
        look = next(left, None)
        if isinstance(look, Exception):
            raise look
        return look

    return clear


def test_what_shows_late_is_ended_too() -> None:
    clear = cleaning(None, "1 processes (broker)", None, "1 processes (mysql)")
    found = watchdog_process.clear_all(clear, "some", **AT_ONCE)
    assert found == ["1 processes (broker)", "1 processes (mysql)"]


@pytest.mark.parametrize(
    "failure",
    [
        RacetrackError("Docker does not answer"),
        OSError(errno.EBUSY, "busy"),
        psutil.AccessDenied(1),
    ],
)
def test_a_failure_that_passes_does_not_end_the_clearing(failure: Exception) -> None:
    clear = cleaning(failure, failure, "1 processes (broker)")
    assert watchdog_process.clear_all(clear, "some", **AT_ONCE) == [
        f"a first attempt failed ({failure})",
        "1 processes (broker)",
    ]


def test_a_failure_that_stays_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clear = cleaning(*[RacetrackError("Docker does not answer.")] * 1000)
    (tmp_path / "run.json").write_text(json.dumps({"outcome": "unfinished"}))
    watchdog_process.clear_and_report(clear, "some", str(tmp_path), retries_for_s=0.05)
    text = "not everything could be ended; the next run will try again: Docker does not"
    assert text in (tmp_path / "start.log").read_text()
    assert text in capfd.readouterr().err


# Code that runs commands as the harness does beside services, in sessions of their own. Each takes
# long.
TOP = """
from racetrack.probes import top
from racetrack.results.folder import RunFolder
folder = RunFolder.create(Path(folder), "steady", "1")
top.take({"gone": [1]}, 600, 1.0, folder, name, lambda: None)
"""
PSQL = """
from racetrack.engines.shared.pgwire import Server
Server("host=nowhere").run_script(Path(folder, "scripts", "views.sql"), name, {})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("word", "code"), [("top", TOP), ("601", PSQL)])
def test_a_command_that_the_harness_was_running_is_ended_too(
    harness: Callable[..., Harness],
    stack_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    word: str,
    code: str,
) -> None:
    (tmp_path / "psql").write_text("#!/bin/sh\nexec sleep 601\n")  # a stand-in
    (tmp_path / "psql").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    small = harness(code)
    left = _child(small, word)
    try:
        small.process.kill()
        Watchdog("native", stack_name).wait_for_last(print)
        assert not processes.lives(left)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()


def _child(small: Harness, word: str) -> psutil.Process:
    """Return the harness's child with this word in its command line, as soon as there is one."""

    def found() -> list[psutil.Process]:
        assert small.process.poll() is None, "the harness ended by itself"
        children = psutil.Process(small.process.pid).children()
        return [child for child in children if word in _words(child)]

    wait_until(found, word, 30, every_s=0.05)
    return found()[0]
