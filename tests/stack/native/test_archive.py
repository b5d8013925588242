"""Tests of archives of a JVM's classes, which speed up its next starts: each is created once, by a
training run, completely; failures are tolerated."""

import os
import subprocess
import sys
from pathlib import Path

from racetrack.stack import prebuilt
from racetrack.stack.prebuilt import Archive
from racetrack.stack.service import Context, Launch, NotReady

# A program that signals that it is up, and writes the archive on SIGTERM, as a JVM does.
WRITES_AT_EXIT = """
import pathlib, signal, sys
def end(*_):
    pathlib.Path(sys.argv[1]).write_text("classes")
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
pathlib.Path("up").touch()
while True:
    signal.pause()
"""


def test_it_is_made_when_the_training_is_told_to_end(context: Context) -> None:
    def launch(context: Context, file: Path) -> Launch:
        return Launch([sys.executable, "-c", WRITES_AT_EXIT, str(file)], cwd=context.work)

    def answers(context: Context) -> None:
        if not (context.work / "up").exists():
            raise NotReady("not up")

    made = Archive("it", "kafka", "a.jar", launch, answers)
    assert made.option(context) == [], "a first start does without, and makes none"
    assert not made.exists(context.parts)
    made.make(context)
    file = made.file(context.parts)
    assert made.exists(context.parts)
    assert made.option(context) == [f"-XX:SharedArchiveFile={file}"]
    assert file.read_text() == "classes"
    assert context.parts["kafka"] in file.parents
    assert not list(context.work.iterdir())


def test_what_is_kept_is_whole_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/file").write_text("x")
    target = prebuilt.path_in(tmp_path, "data")
    assert prebuilt.keep(tmp_path / "source", target)
    (tmp_path / "source/file").write_text("y")
    assert prebuilt.keep(tmp_path / "source", target), "what another run made serves as well"
    assert (target / "file").read_text() == "x"
    assert [path.name for path in target.parent.iterdir()] == ["data"]
    unwritable = tmp_path / "other"
    unwritable.mkdir()
    (unwritable / "made").write_text("in the way")
    assert not prebuilt.keep(tmp_path / "source", prebuilt.path_in(unwritable, "data"))


def test_what_a_killed_run_had_half_made_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("whole")
    gone = subprocess.Popen(["true"])
    gone.wait()
    target = prebuilt.path_in(tmp_path, "a.jsa")
    target.parent.mkdir()
    half_made, at_work = (target.with_name(f".{pid}-a.jsa") for pid in (gone.pid, os.getppid()))
    half_made.touch()
    at_work.touch()
    assert prebuilt.keep(tmp_path / "source", target)
    assert sorted(target.parent.iterdir()) == sorted([at_work, target])
