"""Watchdog process: sleeps until the harness ends, then removes the stack that the harness left.

It runs while engines are measured, so it imports few modules, and imports all of them at its start.
"""

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
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
    "kubernetes": "racetrack.stack.kubernetes.orphans",
    "kubernetes-job": "racetrack.stack.kubernetes.job_orphans",
}
OUTCOME = "the harness was killed"


def main(runtime: str, stack_name: str, run_folder: str | None = None) -> None:
    """Sleep until standard input is closed, then remove the stack of this name."""
    clear: Clear = importlib.import_module(CLEANUPS[runtime]).clear_at_once
    sys.stdin.buffer.read()
    clear_and_report(clear, stack_name, run_folder, and_then=remove_elsewhere)


def clear_and_report(
    clear: Clear,
    stack_name: str,
    run_folder: str | None,
    retries_for_s: float = RETRIES_FOR_S,
    and_then: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Remove the stack; report what was done on standard error and in the run's folder. Then call
    `and_then`, which returns further lines for the report."""
    began = time.monotonic()
    try:
        cleared = clear_all(clear, stack_name, retries_for_s=retries_for_s)
        what = ", ".join(cleared) or "nothing"
        outcome = f"ended {what}, within {time.monotonic() - began:.1f} s."
    except FAILURES as error:
        outcome = f"not everything could be ended; the next run will try again: {error}"
    lines = [f"The harness was killed; {outcome}", *and_then()]
    try:
        if run_folder:
            note(Path(run_folder), "\n".join(lines))
    except OSError as error:  # a full disk
        lines.append(f"This can't be recorded in {run_folder}: {error}")
    with contextlib.suppress(OSError):  # the terminal may be gone
        print("\n".join(lines), file=sys.stderr, flush=True)


def remove_elsewhere() -> Sequence[str]:
    """Remove what the killed run created in services that the user provides. Return lines for the
    user."""
    # Imported only here, because the import takes memory, and most runs use no such service.
    from racetrack.stack import provided

    try:
        return provided.remove_of_killed(os.environ)
    except FAILURES as error:
        return [f"not everything could be removed from services that run elsewhere: {error}"]


def clear_all(
    clear: Clear,
    stack_name: str,
    *,
    quiet_s: float = QUIET_S,
    look_every_s: float = LOOK_EVERY_S,
    retries_for_s: float = RETRIES_FOR_S,
) -> list[str]:
    """Call `clear` until nothing has been found for `quiet_s`; return what it removed.

    Services that were being started when the harness died may appear late. A failure may be
    temporary (Docker is busy, a process still writes), so it is raised only after `retries_for_s`.
    """
    found: list[str] = []
    first_failure = ""
    give_up = time.monotonic() + retries_for_s
    quiet_at = time.monotonic() + quiet_s
    while time.monotonic() < quiet_at:
        try:
            what = clear(stack_name)
        except FAILURES as error:
            if time.monotonic() > give_up:
                raise
            first_failure = first_failure or f"a first attempt failed ({error})"
            quiet_at = time.monotonic() + quiet_s
        else:
            if what:
                found.append(what)
                quiet_at = time.monotonic() + quiet_s
        time.sleep(look_every_s)
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
