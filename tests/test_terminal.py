"""Tests that a lost terminal does not end the output, and that signals end the work once, but never
the clean-up."""

import contextlib
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest
from confluent_kafka import Consumer

from racetrack import terminal
from racetrack.terminal import Screen, patient_console


@pytest.fixture
def gone() -> Iterator[TextIO]:
    """Return a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    file = os.fdopen(writer, "w", buffering=1)
    yield file
    with contextlib.suppress(BrokenPipeError):  # closing tries again to write the rest
        file.close()


def test_a_pipe_that_has_gone_ends_nothing_and_the_log_goes_on(
    tmp_path: Path, gone: TextIO
) -> None:
    screen = Screen(patient_console(gone))
    with screen.copied_to((tmp_path / "start.log").open("w")):
        screen.say("one")
        screen.say("two")
    assert (tmp_path / "start.log").read_text() == "one\ntwo\n"


def test_a_full_disk_ends_the_log_and_not_the_run() -> None:
    out = io.StringIO()
    screen = Screen(patient_console(out))
    with Path("/dev/full").open("w", buffering=1) as log, screen.copied_to(log):
        screen.say("one")
        screen.say("two")
    assert out.getvalue() == "one\n  start.log ends here: No space left on device\ntwo\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_work_and_later_ones_do_not(number: signal.Signals) -> None:
    lines: list[str] = []
    with terminal.guarded(lines.append) as guard:
        with pytest.raises(terminal.Interrupted, match=number.name) as raised:
            signal.raise_signal(number)
        guard.disarm()
        signal.raise_signal(number)
    assert raised.value.exit_code == 128 + number
    (line,) = lines
    assert "cleaning up" in line


def test_a_signal_that_came_during_cleaning_up_ends_what_would_follow() -> None:
    with terminal.guarded(lambda _line: None) as guard:
        guard.disarm()
        guard.rearm()
        guard.disarm()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(terminal.Interrupted, match="SIGTERM"):
            guard.rearm()


class Finalized:
    """Receives a signal in its finalizer, where Python ignores exceptions."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)


class Configured:
    """Receives a signal while a library in C reads it as the value of a property, and raises an
    error of its own."""

    def __init__(self) -> None:
        Consumer({"group.id": self})

    def __str__(self) -> str:
        signal.raise_signal(signal.SIGINT)
        return "a group"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the exception of a signal again after less time."""
    monkeypatch.setattr(terminal, "AGAIN_AFTER_S", 0.1)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("lose", [Finalized, Configured])
def test_a_signal_whose_exception_is_lost_still_ends_the_work(lose: Callable[[], object]) -> None:
    lines: list[str] = []
    with pytest.raises(terminal.Interrupted, match="SIGINT"), terminal.guarded(lines.append):
        lose()
        threading.Event().wait(30)
    assert lines == []


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
def test_what_runs_while_a_signal_ends_the_work_is_not_interrupted() -> None:
    ended = False
    with terminal.guarded(print), pytest.raises(terminal.Interrupted, match="SIGINT"):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)
            threading.Event().wait(3 * terminal.AGAIN_AFTER_S)
            ended = True
    assert ended


def test_nohup_stays_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminal.guarded(print):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
