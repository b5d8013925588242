"""Archives of loaded classes (class data sharing), which halve the start of a Java service.

An archive is made by a training: the service is started once, on scratch data, until it answers,
and writes what classes it loaded when it is told to end. It is kept beside the part. A JVM that
finds an archive unfit for itself says so in its log and starts without.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from racetrack.stack.native import jvm, made
from racetrack.stack.native.leftovers import mark
from racetrack.stack.native.service import Context, Launch, NotReady

TRAINING_S = 60.0
ASK_EVERY_S = 0.1


@dataclass(frozen=True)
class Archive:
    """Which classes: those that `launch` needs, with this class path, until `answers` returns.

    `launch(context, options)` writes what the service needs into `context.work` and says how to
    start it with these JVM options; `answers(context)` raises NotReady until the training is over.
    """

    service: str
    part: str
    class_path: str
    launch: Callable[[Context, Sequence[str]], Launch]
    answers: Callable[[Context], None]

    def option(self, context: Context) -> list[str]:
        """The JVM option that names the archive, made now if it is missing.

        None where a training fails, as on a machine that is short of memory: the start is slower.
        """
        file = made.made(context.parts[self.part], f"{self.service}-{self._fits()}.jsa")
        if not file.exists():
            self._make(context, file)
        return [f"-XX:SharedArchiveFile={file}"] if file.exists() else []

    def _fits(self) -> str:
        release = (jvm.java().parent.parent / "release").read_text()
        return hashlib.sha256(f"{jvm.java()} {release} {self.class_path}".encode()).hexdigest()[:12]

    def _make(self, context: Context, file: Path) -> None:
        scratch = context.work / "training"
        scratch.mkdir()
        try:
            dumped = scratch / "classes.jsa"
            training = replace(context, work=scratch)
            launch = self.launch(training, [f"-XX:ArchiveClassesAtExit={dumped}"])
            if self._run(training, launch) and dumped.exists():
                made.keep(dumped, file)
        finally:
            shutil.rmtree(scratch)

    def _run(self, context: Context, launch: Launch) -> bool:
        """Start, wait, end; True if the service answered and ended as told."""
        env = {**os.environ, **launch.env, **mark(context.settings.stack_name, self.service)}
        with (context.work / "training.log").open("wb") as log:
            process = subprocess.Popen(
                launch.argv,
                env=env,
                cwd=launch.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            answered = self._wait(context, process)
            process.terminate()
            process.wait(TRAINING_S)
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.kill()
            process.wait()
        return answered

    def _wait(self, context: Context, process: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + TRAINING_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                self.answers(context)
            except NotReady:
                time.sleep(ASK_EVERY_S)
            else:
                return True
        return False
