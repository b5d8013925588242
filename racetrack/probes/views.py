"""Probes of an engine's views: progress, traced views, and the view reader."""

import csv
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, cast

from racetrack import environment
from racetrack.clock import AHEAD_MS, wait_until
from racetrack.config import REPO
from racetrack.engines.contract import Engine, Progress, Seen, Summary
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes.base import LOOK_EVERY_S, CurvesFile, HadOutage, Probe, no_outage
from racetrack.probes.reader import COLUMNS, Job
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Stack
from racetrack.stack.processes import log_tail, mark_command

Updates = Callable[[threading.Event], Iterator[Summary | Progress]]


class DelayProbe(Probe):
    """Follows an engine's progress: the updates of its two progress views or, if given, `updates`.
    Writes each update of the summary into `<engine>_sample_dt.log`, and each partition's count into
    the `processed` curve."""

    failure_kind = EngineFailed

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        curves: CurvesFile,
        had_outage: HadOutage = no_outage,
        updates: Updates | None = None,
    ) -> None:
        super().__init__()
        self._had_outage = had_outage
        self.counted: dict[int, int] = {}  # partition -> the engine's latest count
        self._lost_ms: int | None = None
        self.name = f"The progress of {engine.title}"
        self.newest: Summary | None = None
        self.ahead: Summary | None = None  # the first update that counts an event of the future
        self._updates, self._curves = updates or partial(engine.updates, stack), curves
        self._dt_log = folder.open_for_lines(f"{engine.name}_sample_dt.log")

    def wait_until(
        self,
        reached: Callable[[Summary], bool],
        deadline_s: float,
        while_waiting: Callable[[], None],
    ) -> bool:
        """Wait until the newest summary satisfies `reached`; return whether it did in time.

        `while_waiting` is called before every check and may raise to end the wait.
        """

        def is_met() -> bool:
            while_waiting()
            return self.newest is not None and reached(self.newest)

        return wait_until(is_met, deadline_s, LOOK_EVERY_S)

    def run(self) -> None:
        """Record updates, and continue after the engine has been killed on purpose."""
        with self._dt_log:
            self.follow(self._take_all, self._had_outage)
            self._write_loss()

    def record_loss(self, at_ms: int) -> None:
        """Let the `processed` curve fall to zero at this time (epoch milliseconds), because the
        engine was killed and has lost its counts."""
        self._lost_ms, self.newest = at_ms, None

    def _take_all(self) -> None:
        for update in self._updates(self.stopping):
            if self._lost_ms is not None and update.timestamp_ms >= self._lost_ms:
                self._write_loss()
            if isinstance(update, Summary):
                self._take_summary(update)
            else:
                self._take_progress(update)

    def _write_loss(self) -> None:
        """Write the zeros of `record_loss`. Only the probe's thread calls this, which keeps the
        rows in order of time."""
        if self._lost_ms is not None:
            zeros = [(partition, 0) for partition in sorted(self.counted)]
            self._curves.write(self._lost_ms, "processed", zeros)
            self._lost_ms = None

    def _take_summary(self, now: Summary) -> None:
        self._dt_log.write(
            f"timestamp={now.timestamp_ms}, total={now.total},"
            f" max_received_at={now.max_received_at_ms}, dt_ms={now.dt_ms:g}\n"
        )
        if self._lost_ms is None:
            self.newest = now
        if now.dt_ms < -AHEAD_MS:
            self.ahead = self.ahead or now

    def _take_progress(self, now: Progress) -> None:
        self.counted[now.partition] = now.total
        self._curves.write(now.timestamp_ms, "processed", [(now.partition, now.total)])


VIEWS_CSV, VIEWS_HEADER = "views.csv", "at_ms,view,partition,value\n"


class ViewsProbe(Probe):
    """Follows the engine's traced views. Writes a row into `views.csv` for each change: epoch
    milliseconds, view, partition, and the value of `racetrack.engines.contract.Seen`. `listener` is
    called with each change."""

    failure_kind = EngineFailed

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        had_outage: HadOutage = no_outage,
        listener: Callable[[Seen], None] = lambda _seen: None,
    ) -> None:
        super().__init__()
        self._had_outage, self._listener = had_outage, listener
        self.name = f"The views of {engine.title}"
        self._engine, self._stack = engine, stack
        self.traced = engine.traced_views(stack.settings)
        self._csv = folder.open_for_lines(VIEWS_CSV)
        self.newest: dict[tuple[str, int], int] = {}  # latest value by view and partition

    def run(self) -> None:
        """Record updates of the traced views."""
        with self._csv:
            self._csv.write(VIEWS_HEADER)
            self.follow(self._take_all, self._had_outage)

    def _take_all(self) -> None:
        for seen in self._engine.seen(self._stack, self.traced, self.stopping):
            self.newest[seen.view, seen.partition] = seen.value
            row = seen.timestamp_ms, seen.view, seen.partition, seen.value
            self._csv.write(",".join(map(str, row)) + "\n")
            self._listener(seen)


READS_CSV = "reads.csv"
# Name of the reader process among the services in the run folder.
READER = "reader"
READER_CHECK_EVERY_S = 0.2
END_WITHIN_S = 2.0


class ReadsProbe(Probe):
    """Runs the view reader, a process (`racetrack.probes.reader`) whose output goes to `reads.csv`.
    The reader's CPU time and memory count neither as the harness's nor as the engine's. `per_s` is
    the rate of reads; a change takes effect in the running reader."""

    name = "The output of the view reader"

    def __init__(self, engine: Engine, stack: Stack, folder: RunFolder, per_s: float) -> None:
        super().__init__()
        self._stack_name = stack.settings.stack_name
        self._job = Job.of(engine, engine.access(stack), per_s)
        self.per_s = per_s
        self._read_bytes = 0  # bytes of the file that `new_answer_times` has read
        self._csv, self._file = folder.open_for_lines(READS_CSV), folder.path / READS_CSV
        self._log = folder.stack / f"{READER}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def has_begun(self) -> bool:
        """True if every query has been tried and the scheduled reads have begun."""
        return self._file.stat().st_size > 0

    def new_answer_times(self) -> list[float]:
        """Return the time from due to answered, in milliseconds, of each answer since the last
        call. Failed reads are left out."""
        with self._file.open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(complete)
        rows = csv.DictReader(complete.decode().splitlines(), COLUMNS)
        return [
            float(row["answered_ms"]) - float(row["due_ms"])
            for row in rows
            if row["due_ms"] != COLUMNS[0] and not row["error"]
        ]

    @property
    def pids(self) -> list[int]:
        """Process id of the reader; empty if it does not run."""
        is_running = self._process and self._process.poll() is None
        return [self._process.pid] if self._process and is_running else []

    def run(self) -> None:
        """Start the reader, check that it runs, and end it."""
        with self._csv, self._log.open("xb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "racetrack.probes.reader"],
                stdin=subprocess.PIPE,
                stdout=self._csv,
                stderr=log,
                cwd=REPO,
                env=environment.of_program(mark_command(self._stack_name, READER)),
                start_new_session=True,  # Ctrl-C reaches only the harness, which ends the reader
            )
            with self._process as process:
                self._watch(process, cast(IO[bytes], process.stdin))

    def _watch(self, process: "subprocess.Popen[bytes]", job: IO[bytes]) -> None:
        job.write(self._job.as_line())
        job.flush()
        sent_per_s = self._job.per_s
        while not self.stopping.wait(READER_CHECK_EVERY_S):
            if process.poll() is not None:
                raise RacetrackError(
                    f"it ended with exit code {process.returncode}:\n{log_tail(self._log)}"
                )
            if (per_s := self.per_s) != sent_per_s:
                job.write(f"{per_s:g}\n".encode())
                job.flush()
                sent_per_s = per_s
        job.close()
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()  # the reader still waits for an answer, which is no longer needed
