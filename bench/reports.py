"""Measures reports on many runs, and `--help` of every command, against their bounds.

    PYTHONPATH=. python bench/reports.py [--runs 500] [--brief]

It makes a few run folders from a simulated engine and copies them, since only their number and size
matter. `--brief` makes a report on 25 runs, within the same bounds. Times are CPU times, which on a
quiet machine are what a user waits; elapsed times are shown beside them. Needs the packages of the
tests. Exit code 1: a bound was exceeded.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from racetrack.analysis import table
from racetrack.cli import COMMANDS
from racetrack.results.folder import RUN_JSON

REPO = Path(__file__).resolve().parents[1]
RUNS, BRIEF_RUNS = 500, 25
READ_S, READ_MIB = 0.5, 150.0
REPORT_S, PAGE_MB = 60.0, 5.0
HELP_S = 0.6
ENGINES, RATES = ("steady", "swift"), (1_000, 2_000, 4_000, 8_000)


class Figure(NamedTuple):
    """A measured value, and its bound."""

    what: str
    value: float
    bound: float
    unit: str

    def __str__(self) -> str:
        mark = "within" if self.value <= self.bound else "EXCEEDS"
        line = f"{self.what:<52} {self.value:8,.2f} {self.unit:<4} {mark} {self.bound:g}"
        return f"{line} {self.unit}".rstrip()


def main() -> int:
    """Measure, print a line for each figure, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help=f"default: {RUNS}")
    parser.add_argument("--brief", action="store_true", help=f"make a report on {BRIEF_RUNS} runs")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)  # used by `reading`
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read(arguments.read)))
        return 0
    exceeded = 0
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        make(logs, BRIEF_RUNS if arguments.brief else arguments.runs)
        for figure in (*reading(logs), *reporting(logs), *helping()):
            print(figure)
            exceeded += figure.value > figure.bound
    return 1 if exceeded else 0


def make(logs: Path, count: int) -> None:
    """Make run folders: a run of each engine at each rate, and copies of these."""
    from tests.report.folders import RunSpec, run  # a large import, which reading must not include

    specs = [RunSpec(engine=engine, rate=rate) for rate in RATES for engine in ENGINES]
    originals = [run(logs, spec, f"{number:04}_run") for number, spec in enumerate(specs[:count])]
    for number in range(len(originals), count):
        copy = logs / f"{number:04}_run"
        shutil.copytree(originals[number % len(originals)], copy)
        record = json.loads((copy / RUN_JSON).read_text())
        (copy / RUN_JSON).write_text(json.dumps({**record, "run_id": f"{number:08}"}))


def reading(logs: Path) -> Iterator[Figure]:
    """Yield the figures of reading run folders into the table, in a process of its own."""
    count = len(list(logs.iterdir()))
    made = json.loads(output(sys.executable, "bench/reports.py", "--read", str(logs)))
    if made["rows"] != count:
        raise SystemExit(f"{count} runs gave {made['rows']} rows.")
    yield Figure(f"read {count} runs ({made['elapsed_s']:.2f} s elapsed)", made["s"], READ_S, "s")
    yield Figure("  memory of the process", made["mib"], READ_MIB, "MiB")
    yield Figure(f"  raw files opened {' '.join(made['raw'])}".rstrip(), len(made["raw"]), 0, "")


def read(logs: Path) -> dict[str, Any]:
    """Read the table; return the time and the memory that it took, and the opened raw files."""
    opened: set[str] = set()
    table.read([next(logs.iterdir())])  # imports and compiles what the first run needs

    def note(event: str, values: tuple[object, ...]) -> None:
        if event == "open" and str(values[0]).startswith(str(logs)):
            opened.add(Path(str(values[0])).name)

    sys.addaudithook(note)
    began_s, used_s = time.perf_counter(), time.process_time()
    rows = table.read([logs]).rows
    return {
        "s": time.process_time() - used_s,
        "elapsed_s": time.perf_counter() - began_s,
        "mib": peak_mib(),
        "rows": len(rows),
        "raw": sorted(opened - {RUN_JSON}),
    }


def peak_mib() -> float:
    """Return the peak of this process's memory. `getrusage` would include the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def reporting(logs: Path) -> Iterator[Figure]:
    """Yield the figures of a report on all runs."""
    out = logs.parent / "report"
    yield timed("./race report", ["report", str(logs), "--out", str(out)], REPORT_S)
    yield Figure("  its page", (out / "report.html").stat().st_size / 1e6, PAGE_MB, "MB")
    largest = max((page.stat().st_size for page in out.glob("runs/*.html")), default=0)
    yield Figure("  largest page of a run", largest / 1e6, PAGE_MB, "MB")


def helping() -> Iterator[Figure]:
    """Yield the time of `--help` of every command."""
    names = [name for listed in COMMANDS.values() for name in listed]
    for words in (["--help"], *([name, "--help"] for name in names)):
        yield timed(f"./race {' '.join(words)}", words, HELP_S)


def timed(what: str, words: list[str], bound_s: float) -> Figure:
    """Run a command of Racetrack; return its CPU time."""
    began_s, before_s = time.perf_counter(), used_by_children_s()
    output("./race", *words)
    what = f"{what} ({time.perf_counter() - began_s:.2f} s elapsed)"
    return Figure(what, used_by_children_s() - before_s, bound_s, "s")


def used_by_children_s() -> float:
    """Return the CPU time of all programs that have been run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def output(*words: str) -> str:
    """Run a program in the repository; return its output."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        words, cwd=REPO, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
