"""Reads the state of a job from Flink's log, the only place that reports a failure."""

import re
from pathlib import Path

from racetrack.engines.contract import DemoError
from racetrack.engines.flink.gateway import root_cause

_FAILED = re.compile(r"Job (\S+) \(\w+\) switched from state \w+ to (FAILING|FAILED)\.(.*)", re.S)
_RUNS = re.compile(r"Job (\S+) \(\w+\) switched from state CREATED to RUNNING\.")


class JobLog:
    """Flink's log, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0

    def skip(self) -> None:
        """Look only at what will be written from now on."""
        self._read_to = self._path.stat().st_size

    def has_started(self) -> bool:
        """Return whether a job runs, by the lines since the last call.

        Raises:
            DemoError: a job failed.
        """
        return bool(_RUNS.search(self._look()))

    def check(self) -> None:
        """Look at what was written since the last time.

        Raises:
            DemoError: a job failed; the message names the root cause.
        """
        self._look()

    def _look(self) -> str:
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        # The last line may be half written: it is read again next time.
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        text = whole.decode(errors="replace")
        if failed := _FAILED.search(text):
            raise DemoError(
                f"Flink's job failed: {root_cause(failed[3].strip())}\nIts log: {self._path}"
            )
        return text
