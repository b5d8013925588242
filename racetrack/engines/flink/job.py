"""State of a run's job, from Flink's log, which is the only place that reports failures and
checkpoints. If the user provides Flink, the gateway reports the state instead."""

import re
import time
from pathlib import Path

from racetrack.config import Settings
from racetrack.engines.contract import DemoError
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.gateway import root_cause
from racetrack.stack.elsewhere import RUN_NAME

JOBS_EVERY_S = 2.0
_FAILED = re.compile(r"Job (\S+) \(\w+\) switched from state \w+ to (FAILING|FAILED)\.(.*)", re.S)
_COMPLETED = re.compile(r"Completed checkpoint (\d+) for job (\w+) ")
_RUNS = re.compile(r"Job (\S+) \(\w+\) switched from state CREATED to RUNNING\.")


class JobLog:
    """Reader of Flink's log while the log grows. If jobs were started one after the other, only the
    last of them counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self.hint = f"Its log: {path}"

    def skip(self) -> None:
        """Ignore everything written so far."""
        self._read_to = self._path.stat().st_size

    def has_started(self) -> bool:
        """Return whether the lines written since the last call report that a job has started.

        Raises:
            DemoError: a job failed.
        """
        return bool(_RUNS.search(self._look()))

    def check(self) -> None:
        """Check the lines written since the last call.

        Raises:
            DemoError: a job failed; the message contains the root cause.
        """
        self._look()

    def _look(self) -> str:
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        # The last line may be incomplete; it is read again by the next call.
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        text = whole.decode(errors="replace")
        if failed := _FAILED.search(_RUNS.split(text)[-1]):
            raise DemoError(f"Flink's job failed: {root_cause(failed[3].strip())}\n{self.hint}")
        return text


class JobElsewhere:
    """The job of this run in a Flink that the user provides."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._next_s = settings, 0.0
        self.hint = f"See the log of the cluster of {ELSEWHERE.address(settings)}."

    def skip(self) -> None:
        """Do nothing: `check` looks only at the last job."""

    def check(self) -> None:
        """Check the job's status, at most every JOBS_EVERY_S.

        Raises:
            DemoError: the job is not running.
        """
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + JOBS_EVERY_S
        if why := ELSEWHERE.why_not_running(self._settings, RUN_NAME):
            raise DemoError(f"Flink's job failed: {why}. {self.hint}")


def last_checkpoint(log: Path, folder: str) -> str | None:
    """Return the path of the last completed checkpoint, from which a killed Flink can resume; None
    if there is none. `folder` is Flink's setting `execution.checkpointing.dir`."""
    checkpoints = _COMPLETED.findall(log.read_text(errors="replace"))
    return (
        f"{folder.rstrip('/')}/{checkpoints[-1][1]}/chk-{checkpoints[-1][0]}"
        if checkpoints
        else None
    )
