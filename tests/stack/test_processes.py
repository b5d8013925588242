"""Tests that the processes that a killed run leaves are found by environment variables and ended,
and no others."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from racetrack.stack import processes
from racetrack.stack.compose import orphans

WITH_CHILD = """
import subprocess, sys
code = "import sys; print('up', flush=True); sys.stdin.read()"
subprocess.Popen([sys.executable, "-c", code]).wait()
"""
WITH_CHILD_UNMARKED = WITH_CHILD.replace("code])", "code], env={})")
STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
sys.stdin.read()
"""


def start(code: str, marks: Mapping[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **marks},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    return process


def test_a_process_and_its_child_are_ended(stack_name: str) -> None:
    start(WITH_CHILD, processes.mark(stack_name, "loadgen"))
    assert [member.service for member in processes.members(stack_name)] == ["loadgen"] * 2
    processes.work_root(stack_name).mkdir()
    message = processes.clear(stack_name)
    assert message is not None
    assert "2 processes (loadgen)" in message
    assert processes.members(stack_name) == []
    assert not processes.work_root(stack_name).exists()
    assert processes.clear(stack_name) is None


def test_an_orphan_is_found_though_its_parent_is_gone(stack_name: str) -> None:
    parent = start(WITH_CHILD, processes.mark(stack_name, "broker"))
    parent.kill()
    parent.wait()
    assert "1 processes (broker)" in (processes.clear(stack_name) or "")


def test_a_child_that_writes_over_its_environment_is_found_by_its_parent(stack_name: str) -> None:
    start(WITH_CHILD_UNMARKED, processes.mark(stack_name, "database"))
    assert [member.service for member in processes.members(stack_name)] == ["database"] * 2


@pytest.mark.slow
def test_a_process_is_found_while_it_replaces_its_program(stack_name: str, tmp_path: Path) -> None:
    again = tmp_path / "again.sh"
    again.write_text('exec sh "$0"\n')
    process = subprocess.Popen(
        ["sh", again], env={**os.environ, **processes.mark(stack_name, "engine")}
    )
    seen = [len(processes.members(stack_name)) for _ in range(100)]
    assert seen == [1] * 100
    processes.end(stack_name)
    assert process.wait(timeout=5) < 0


@pytest.mark.slow
def test_one_that_ignores_sigterm_is_killed(stack_name: str) -> None:
    process = start(STUBBORN, processes.mark(stack_name, "engine"))
    processes.end(stack_name, grace_s=0.3)
    assert process.wait(timeout=5) == -signal.SIGKILL


def test_a_stack_of_another_name_is_left_alone(stack_name: str) -> None:
    other = start(STUBBORN, processes.mark(f"{stack_name}-b", "engine"))
    try:
        assert processes.clear(stack_name) is None
        assert other.poll() is None
    finally:
        processes.end(f"{stack_name}-b", grace_s=0.1)


def test_of_containers_every_command_of_the_harness_is_ended_and_no_native_service(
    stack_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")  # a fake Docker: there, nothing is left
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    marks = [processes.mark_command(stack_name, name) for name in ("top", "psql")]
    commands = [start(STUBBORN, mark) for mark in (*marks, orphans.mark(stack_name))]
    service = start(STUBBORN, processes.mark(stack_name, "broker"))
    others = start(STUBBORN, processes.mark_command(f"{stack_name}-b", "top"))
    try:
        assert orphans.clear_at_once(stack_name) == "`docker compose`, `psql`, `top`"
        assert [each.wait(30) for each in commands] == [-signal.SIGKILL] * 3
        assert service.poll() is others.poll() is None
        assert orphans.clear_at_once(stack_name) is None
    finally:
        others.kill()


def test_data_goes_though_somebody_writes_into_it_at_first(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    late = iter(["first", "second"])

    def before_a_writer(path: Path) -> None:
        if name := next(late, None):
            (path / name).touch()
            path.rmdir()  # fails as long as something writes there
        shutil.rmtree(path)

    assert processes.remove(data, before_a_writer)
    assert not data.exists()

    def refused(_path: object) -> None:
        raise OSError(errno.ENOTEMPTY, "somebody goes on writing")

    with pytest.raises(OSError, match="somebody goes on writing"):
        processes.remove(tmp_path, refused, within_s=0.05)


# The first thread ends; the other one lives until standard input ends.
WITHOUT_FIRST_THREAD = """
import ctypes, os, pathlib, sys, threading, time
def other():
    while " Z " not in pathlib.Path(f"/proc/{os.getpid()}/stat").read_text():
        time.sleep(0.001)
    print("up", flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=other).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_lives_as_long_as_any_of_its_threads(stack_name: str) -> None:
    started = start(WITHOUT_FIRST_THREAD, processes.mark(stack_name, "broker"))
    process = psutil.Process(started.pid)
    assert process.status() == psutil.STATUS_ZOMBIE and processes.lives(process)
    assert started.stdin
    started.stdin.close()
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)  # leaves it a zombie
    assert not processes.lives(process)
    started.wait()
