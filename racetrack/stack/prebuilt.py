"""Results that are made once per part and speed up every later start, such as class archives.

They are kept in the part's folder and removed with it. A user who may not write there runs
without them.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from racetrack.stack import jvm, net
from racetrack.stack.processes import mark
from racetrack.stack.service import Context, Launch, NotReady, spawn

TRAINING_S = 180.0
ASK_EVERY_S = 0.1
# A JVM says 143, and so does a shell; Python says the signal itself.
ENDED_BY_SIGTERM = (143, -signal.SIGTERM)


def path_in(part: Path, name: str) -> Path:
    """Where a thing of that name is kept, whether it is there or not."""
    return part / "made" / name


def keep(source: Path, target: Path) -> bool:
    """Copy a file or folder to where `path_in` says: whole or not at all. False if there is no way
    to write there; whoever asked does without, only slower."""
    unfinished = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        target.parent.mkdir(exist_ok=True)
        _remove_half_made(target)
        if source.is_dir():
            shutil.copytree(source, unfinished)
        else:
            shutil.copyfile(source, unfinished)
        # A JVM dies of an archive that a power cut has shortened.
        os.sync()
        unfinished.rename(target)
    except OSError:
        _remove(unfinished)
        # Where another run was faster, a folder stands already, and it serves as well.
        return target.exists()
    return True


def _remove_half_made(target: Path) -> None:
    """What runs left that were killed while they copied."""
    for path in target.parent.glob(f".*-{target.name}"):
        pid = path.name[1:].partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


@dataclass(frozen=True)
class Archive:
    """The classes of one service with this class path: a `FasterStart`.

    `train(context, file)` writes what the service needs into `context.work` and says how to start
    it so that it writes `file` when it ends. It is told to end when `answers` returns, which raises
    NotReady until then; a training that ends by itself, with exit code 0, need not answer. `ports`
    are settings for which the training is given free ports.
    """

    service: str
    part: str
    class_path: str
    train: Callable[[Context, Path], Launch]
    answers: Callable[[Context], None]
    ports: Sequence[str] = ()
    peers: Sequence[str] = ()

    def file(self, parts: Mapping[str, Path]) -> Path:
        """Return where the archive is, or will be."""
        return path_in(parts[self.part], f"{self.service}-{self._fits()}.jsa")

    def exists(self, parts: Mapping[str, Path]) -> bool:
        """Return whether it has been made."""
        return self.file(parts).exists()

    def option(self, context: Context) -> list[str]:
        """Return the JVM's option for the archive, if there is one."""
        file = self.file(context.parts)
        return [f"-XX:SharedArchiveFile={file}"] if file.exists() else []

    def make(self, context: Context) -> None:
        """Make the archive. There is none where that fails, as on a machine short of memory."""
        scratch = context.work / "training"
        scratch.mkdir()
        try:
            dumped = scratch / "classes.jsa"
            settings = net.elsewhere(context.settings, *self.ports)
            training = replace(context, work=scratch, settings=settings)
            if self._run(training, self.train(training, dumped)) and dumped.exists():
                keep(dumped, self.file(context.parts))
        finally:
            shutil.rmtree(scratch)

    def _fits(self) -> str:
        release = (jvm.java().parent.parent / "release").read_text()
        return hashlib.sha256(f"{jvm.java()} {release} {self.class_path}".encode()).hexdigest()[:12]

    def _run(self, context: Context, launch: Launch) -> bool:
        """Start, wait, end; True if that went as it should."""
        with (context.work / "training.log").open("wb") as log:
            process = spawn(launch, log, mark(context.settings.stack_name, self.service))
        try:
            answered = self._wait(context, process)
            process.terminate()
            code = process.wait(TRAINING_S)
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.kill()
            process.wait()
        # One that was broken off may have left half an archive, and a JVM dies of that.
        ended_well = code == 0 or (answered and code in ENDED_BY_SIGTERM)
        return ended_well and not context.stopping.is_set()

    def _wait(self, context: Context, process: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + TRAINING_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                self.answers(context)
            except NotReady:
                if context.stopping.wait(ASK_EVERY_S):
                    return False
            else:
                return True
        return False


def training(
    launch: Callable[[Context, Sequence[str]], Launch],
) -> Callable[[Context, Path], Launch]:
    """The `train` of a service that `launch` starts with options for its JVM."""
    return lambda context, file: launch(context, [f"-XX:ArchiveClassesAtExit={file}"])
