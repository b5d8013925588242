"""A program that uses a known share of a core during a run, to test that the harness detects it.

    python -m racetrack.run.burner 0.2 burnt.csv

The program detaches from its parent, because otherwise its CPU time would count as the harness's.
It ends when its standard input is closed.
"""

import csv
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from racetrack.clock import now_ms
from racetrack.config import REPO

PAUSE_S, ROW_EVERY_S = 0.02, 0.2


@contextmanager
def burning(cores: float, file: Path) -> Iterator[None]:
    """Run the program inside the context, with this share of a core. It writes its CPU time to
    `file`."""
    argv = [sys.executable, "-m", "racetrack.run.burner", str(cores), str(file.absolute())]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=REPO, start_new_session=True) as parent:
        parent.wait()  # the detached child runs until this end of the pipe is closed
        yield


def burnt_pct(file: Path, start_ms: float, end_ms: float) -> float:
    """Return the CPU use that the program recorded between two times (epoch milliseconds), percent
    of a core."""
    with file.open(newline="") as lines:
        rows = [(int(row["at_ms"]), float(row["cpu_s"])) for row in csv.DictReader(lines)]
    at_ms, cpu_s = zip(*rows, strict=True)
    first, last = np.interp([start_ms, end_ms], at_ms, cpu_s)
    return float(100_000 * (last - first) / (end_ms - start_ms))


def _burn(cores: float, file: Path) -> None:
    began_s = row_due_s = time.monotonic()
    with file.open("w", buffering=1) as rows:
        rows.write("at_ms,cpu_s\n")
        while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            # On a busy machine the program may never get its share, so it leaves this loop after a
            # while to check whether it has to end.
            check_s = time.monotonic() + ROW_EVERY_S
            while _used_s() < cores * (time.monotonic() - began_s) and time.monotonic() < check_s:
                pass
            if time.monotonic() >= row_due_s:
                rows.write(f"{now_ms()},{_used_s():.4f}\n")
                row_due_s += ROW_EVERY_S
        rows.write(f"{now_ms()},{_used_s():.4f}\n")


def _used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    if os.fork() == 0:
        _burn(float(sys.argv[1]), Path(sys.argv[2]))
