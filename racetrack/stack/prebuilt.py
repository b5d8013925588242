"""Prebuilt files that speed up later starts of a service, made once per part (component).

They are in the part's folder. Without write permission there, services start without them.

Most are archives of a JVM's loaded classes (class data sharing), which halve the time that a Java
service takes to start. After the first run, the service is started once more with scratch data and
writes the archive when it ends. If a JVM finds an archive unsuitable, it logs this and starts
without the archive.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from racetrack import integrity
from racetrack.clock import attempts
from racetrack.stack import jvm, net
from racetrack.stack.processes import mark
from racetrack.stack.service import CHECK_EVERY_S, Context, Launch, NotReady, spawn

TRAINING_S = 180.0
# JVMs and shells exit with 143; Python reports the signal.
ENDED_BY_SIGTERM = (143, -signal.SIGTERM)


def path_in(part: Path, name: str) -> Path:
    """Return the path of a prebuilt file with this name, whether it exists or not."""
    return part / "made" / name


def keep(source: Path, target: Path) -> bool:
    """Copy a file or folder to `target`, completely or not at all; return False on failure."""
    unfinished = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        target.parent.mkdir(exist_ok=True)
        _remove_half_made(target)
        if source.is_dir():
            shutil.copytree(source, unfinished)
        else:
            shutil.copyfile(source, unfinished)
        # Write the copy to disk first: a JVM crashes on an archive that a power cut has truncated.
        os.sync()
        unfinished.rename(target)
        made = [target] if target.is_file() else integrity.files_in(target)
        integrity.add_hashes(target.parent.parent, made)
    except OSError:
        _remove(unfinished)
        # Another run may have made the file at the same time.
        return target.exists()
    return True


def _remove_half_made(target: Path) -> None:
    """Remove unfinished copies of runs that were killed while copying."""
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
    """Archive of the loaded classes of one service with one class path: a `FasterStart`.

    To make the archive, the service runs once in a so-called training. `train(context, file)`
    writes the service's configuration into `context.work` and returns the process to start; that
    process writes the archive to `file` when it ends. `answers` raises NotReady until the training
    has loaded its classes; then the training is terminated. A training that exits with 0 by itself
    succeeds, too. `ports` are the port settings that the training replaces by free ports; `peers`
    are the services that must run meanwhile.
    """

    service: str
    part: str
    class_path: str
    train: Callable[[Context, Path], Launch]
    answers: Callable[[Context], None]
    ports: Sequence[str] = ()
    peers: Sequence[str] = ()

    def file(self, parts: Mapping[str, Path]) -> Path:
        """Return the archive's path, whether it exists or not."""
        return path_in(parts[self.part], f"{self.service}-{self._fingerprint()}.jsa")

    def exists(self, parts: Mapping[str, Path]) -> bool:
        """Return whether the archive exists."""
        return self.file(parts).exists()

    def option(self, context: Context) -> list[str]:
        """Return the JVM option that uses the archive; an empty list if the archive is missing."""
        file = self.file(context.parts)
        return [f"-XX:SharedArchiveFile={file}"] if file.exists() else []

    def make(self, context: Context) -> None:
        """Make the archive. If the training fails, for example for lack of memory, that is no
        error, but there is no archive."""
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

    def _fingerprint(self) -> str:
        release = (jvm.java().parent.parent / "release").read_text()
        return hashlib.sha256(f"{jvm.java()} {release} {self.class_path}".encode()).hexdigest()[:12]

    def _run(self, context: Context, launch: Launch) -> bool:
        """Run the training to its end; return whether it succeeded."""
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
        # An interrupted training may write an incomplete archive, on which a JVM crashes.
        ended_well = code == 0 or (answered and code in ENDED_BY_SIGTERM)
        return ended_well and not context.stopping.is_set()

    def _wait(self, context: Context, process: "subprocess.Popen[bytes]") -> bool:
        for _ in attempts(TRAINING_S, CHECK_EVERY_S):
            if process.poll() is not None or context.stopping.is_set():
                return False
            with contextlib.suppress(NotReady):
                self.answers(context)
                return True
        return False


def training(
    launch: Callable[[Context, Sequence[str]], Launch],
) -> Callable[[Context, Path], Launch]:
    """Return the function `Archive.train` for a service; `launch` takes options for its JVM."""
    return lambda context, file: launch(context, [f"-XX:ArchiveClassesAtExit={file}"])
