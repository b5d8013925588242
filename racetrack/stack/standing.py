"""The note that a stack was put up with `./race up`: written, read, and respected by runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.clock import utc_now
from racetrack.errors import BusyError
from racetrack.results.json_file import write_json
from racetrack.stack.contract import Standing


class StandingNote:
    """The file `up.json` in the folder where a stack's data is: gone with it."""

    def __init__(self, root: Path) -> None:
        self._file = root / "up.json"

    def write(self, runtime: str, engine: str, workload: str, services: Sequence[str]) -> None:
        """From now on the stack stands, for this engine and workload, with these services."""
        what = {"runtime": runtime, "engine": engine, "workload": workload}
        write_json(self._file, {**what, "since": utc_now(), "expected": sorted(services)})

    def runtime(self) -> str | None:
        """Return the runtime that the stack of the note was put up in; None if there is no note."""
        if not self._file.exists():
            return None
        return str(json.loads(self._file.read_text())["runtime"])

    def read(self, services: Mapping[str, Sequence[int]]) -> Standing | None:
        """The stack of the note, if anything of it still lives: `services` is what does."""
        if not services or not self._file.exists():
            return None
        return Standing(services=services, **json.loads(self._file.read_text()))


def require_none(up: Standing | None) -> None:
    """
    Raises:
        BusyError: a stack of this name stands, and is left alone.
    """
    if up:
        raise BusyError(
            f"A stack is up since {up.since} (`./race up {up.engine}`)."
            " Take it down with `./race down`, or set another STACK_NAME and other ports."
        )
