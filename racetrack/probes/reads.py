"""Has an engine's views read by a process of its own, and keeps what it tells."""

import dataclasses
import subprocess
import sys
from typing import IO, cast

from racetrack import environment
from racetrack.config import REPO, revealed
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError
from racetrack.probes.reader import Job
from racetrack.probes.thread import Probe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Stack
from racetrack.stack.processes import log_tail, mark_command

FILE = "reads.csv"
# As the run folder calls it, among the services.
NAME = "reader"
LOOK_EVERY_S = 0.2
END_WITHIN_S = 2.0


class ReadsProbe(Probe):
    """Keeps `reads.csv`, as `racetrack.probes.reader` describes it. What the reader uses is neither
    the harness's nor the engine's: it is accounted for by itself."""

    name = "What the views' reader says"

    def __init__(self, engine: Engine, stack: Stack, folder: RunFolder) -> None:
        super().__init__()
        settings = stack.settings
        self._stack_name = settings.stack_name
        self._job = Job(
            engine=engine.name,
            per_s=settings.reads_per_second,
            settings=revealed(settings),
            endpoints=dataclasses.asdict(stack.endpoints),
            logs={name: str(stack.log_of(name)) for name in engine.services_in(settings)},
            namespace=engine.namespace(settings),
        )
        self._csv, self._file = folder.open_for_lines(FILE), folder.path / FILE
        self._log = folder.stack / f"{NAME}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether every query has been asked once, and reads are due from now on."""
        return self._file.stat().st_size > 0

    @property
    def pids(self) -> list[int]:
        """Its process, while it lives."""
        live = self._process and self._process.poll() is None
        return [self._process.pid] if self._process and live else []

    def run(self) -> None:
        """Begin it, see that it lives, end it."""
        with self._csv, self._log.open("xb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "racetrack.probes.reader"],
                stdin=subprocess.PIPE,
                stdout=self._csv,
                stderr=log,
                cwd=REPO,
                env=environment.of_program(mark_command(self._stack_name, NAME)),
                start_new_session=True,  # Ctrl-C is for the harness, which ends it
            )
            with self._process as process:
                self._watch(process, cast(IO[bytes], process.stdin))

    def _watch(self, process: "subprocess.Popen[bytes]", job: IO[bytes]) -> None:
        job.write(self._job.as_line())
        job.flush()
        while not self.stopping.wait(LOOK_EVERY_S):
            if process.poll() is not None:
                raise RacetrackError(
                    f"it ended with exit code {process.returncode}:\n{log_tail(self._log)}"
                )
        job.close()
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()  # it waits for an answer, which nobody would look at any more
