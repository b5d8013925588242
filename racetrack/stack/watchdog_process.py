"""Watchdog process: sleeps until the harness ends, then removes the stack that the harness left.

It runs while engines are measured, so it imports few modules, and imports all of them at its start.
"""

import contextlib
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from racetrack.errors import RacetrackError
from racetrack.results.json_file import write_json

Clear = Callable[[str], str | None]

QUIET_S = 0.5
RETRIES_FOR_S = 30.0
LOOK_EVERY_S = 0.1
FAILURES = (RacetrackError, OSError, psutil.Error)
# Runtime → the module that removes the services of a killed run. Only one of them is imported.
CLEANUPS = {
    "native": "racetrack.stack.processes",
    "compose": "racetrack.stack.compose.orphans",
}
OUTCOME = "the harness was killed"


def main(runtime: str, stack_name: str, run_folder: str | None = None) -> None:
    """Sleep until standard input is closed, then remove the stack of this name."""
    clear: Clear = importlib.import_module(CLEANUPS[runtime]).clear_at_once
    sys.stdin.buffer.read()
    began = time.monotonic()
    try:
        what = ", ".join(clear_all(clear, stack_name)) or "nothing"
        outcome = f"ended {what}, within {time.monotonic() - began:.1f} s."
    except FAILURES as error:
        outcome = f"not everything could be ended; the next run will try again: {error}"
    lines = [f"The harness was killed; {outcome}"]
    try:
        if run_folder:
            note(Path(run_folder), lines[0])
    except OSError as error:  # a full disk
        lines.append(f"This can't be recorded in {run_folder}: {error}")
    with contextlib.suppress(OSError):  # the terminal may be gone as well
        print("\n".join(lines), file=sys.stderr, flush=True)


def clear_all(clear: Clear, stack_name: str) -> list[str]:
    """Call `clear` until nothing has been found for `QUIET_S`; return what it removed.

    Services that were being started when the harness died may appear late. A failure may be
    temporary (Docker is busy, a process still writes), so it is raised only after `RETRIES_FOR_S`.
    """
    found: list[str] = []
    first_failure = ""
    give_up = time.monotonic() + RETRIES_FOR_S
    quiet_at = time.monotonic() + QUIET_S
    while time.monotonic() < quiet_at:
        try:
            what = clear(stack_name)
        except FAILURES as error:
            if time.monotonic() > give_up:
                raise
            first_failure = first_failure or f"a first attempt failed ({error})"
            quiet_at = time.monotonic() + QUIET_S
        else:
            if what:
                found.append(what)
                quiet_at = time.monotonic() + QUIET_S
        time.sleep(LOOK_EVERY_S)
    return [first_failure, *found] if first_failure else found


def note(run_folder: Path, line: str) -> None:
    """Record in a run's folder that the harness was killed, if the run's `run.json` exists."""
    if not (run_folder / "run.json").exists():
        return
    run = json.loads((run_folder / "run.json").read_text())
    if run.get("outcome") == "unfinished":
        run["outcome"] = OUTCOME
    write_json(run_folder / "run.json", run)
    with (run_folder / "start.log").open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
