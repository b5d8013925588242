"""Archives of loaded classes (class data sharing), which halve the start of a Java service.

An archive is made by a training, after the first run: the service is started once more, on scratch
data, until it answers, and writes what classes it loaded when it is told to end. It is kept beside
the part. A JVM that finds an archive unfit for itself says so in its log and starts without.
"""

import hashlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from racetrack.stack.native import jvm, net, prebuilt
from racetrack.stack.native.leftovers import mark
from racetrack.stack.native.service import Context, Launch, NotReady, spawn

TRAINING_S = 180.0
ASK_EVERY_S = 0.1
# A JVM says 143, and so does a shell; Python says the signal itself.
ENDED_BY_SIGTERM = (143, -signal.SIGTERM)


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
        return prebuilt.path_in(parts[self.part], f"{self.service}-{self._fits()}.jsa")

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
                prebuilt.keep(dumped, self.file(context.parts))
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
