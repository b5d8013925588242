"""The screen: the log gets every line, also when the terminal has gone."""

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from racetrack.screen import Screen, patient_console


@pytest.fixture
def gone() -> Iterator[TextIO]:
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    file = os.fdopen(writer, "w", buffering=1)
    yield file
    with contextlib.suppress(BrokenPipeError):  # what was never written is still tried at the end
        file.close()


def test_every_line_goes_to_the_screen_and_the_log(tmp_path: Path) -> None:
    shown = io.StringIO()
    screen = Screen(patient_console(shown))
    with screen.copied_to((tmp_path / "start.log").open("w")):
        screen.heading("[1/6] start")
        screen.say("samples=[1, 2]")
    screen.say("not for the log")
    assert shown.getvalue() == "[1/6] start\nsamples=[1, 2]\nnot for the log\n"
    assert (tmp_path / "start.log").read_text() == "[1/6] start\nsamples=[1, 2]\n"


def test_a_remark_is_told_from_what_every_run_says() -> None:
    shown = io.StringIO()
    Screen(patient_console(shown)).remark("the broker is slow")
    assert shown.getvalue() == "  remark: the broker is slow\n"


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
