"""Looks in Flink's log for a job that has failed: nobody else is told."""

import re
from pathlib import Path

from engines.contract import DemoError
from engines.flink.gateway import root_cause

_FAILED = re.compile(r"Job (\S+) \(\w+\) switched from state \w+ to (FAILING|FAILED)\.(.*)", re.S)


class JobLog:
    """Flink's log, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0

    def check(self) -> None:
        """Look at what was written since the last time.

        Raises:
            DemoError: a job failed; the message names the root cause.
        """
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        # The last line may be half written: it is read again next time.
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        if failed := _FAILED.search(whole.decode(errors="replace")):
            raise DemoError(
                f"Flink's job failed: {root_cause(failed[3].strip())}\nIts log: {self._path}"
            )
