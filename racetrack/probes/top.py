"""Samples from `top`, as in the experiment of 2022."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from racetrack import environment
from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder
from racetrack.stack.processes import mark_command

KIB_PER_GIB = 1024 * 1024
LOOK_EVERY_S = 0.5
MAX_PIDS = 20  # limit of top's option -p


@dataclass(frozen=True)
class Sample:
    """One sample of one service, summed over its processes: CPU use in percent of one core, and
    resident memory in GiB."""

    cpu_pct: float
    rss_gib: float


def take(
    processes: Mapping[str, Sequence[int]],
    samples: int,
    delay_s: float,
    folder: RunFolder,
    stack_name: str,
    while_waiting: Callable[[], None],
    changing: Callable[[], Mapping[str, Sequence[int]]] | None = None,
) -> dict[str, list[Sample]]:
    """Run `top -b` on the processes of each service; return the samples of each, in order.

    Writes `top_details.log` (top's whole output) and `top_samples.log`. `while_waiting` is called
    twice a second and may raise to end the sampling early. If this process is killed, the watchdog
    of the stack `stack_name` ends top.

    For runs that kill services on purpose, pass `changing`, which returns the current processes.
    Then top shows all processes of the machine, and a service without a process counts as zero.

    Raises:
        RacetrackError: top failed, or did not print the expected samples.
    """
    pids = [pid for group in processes.values() for pid in group]
    # top's first screen covers no interval, so request one more and drop the first.
    argv = ["top", "-b", "-w", "512", "-E", "k", "-e", "k", "-d", str(delay_s)]
    argv += ["-n", str(samples + 1)]
    if len(pids) <= MAX_PIDS and not changing:  # otherwise top shows all processes
        argv += [arg for pid in pids for arg in ("-p", str(pid))]
    with folder.open_for_lines("top_details.log") as details:
        top = subprocess.Popen(
            argv,
            # Sets the locale (decimal points) and hides the user's top configuration.
            env=environment.of_program(mark_command(stack_name, "top")),
            stdout=details,
            stderr=subprocess.STDOUT,
            # Protects it from Ctrl-C, and from `kill -9` of the group.
            start_new_session=True,
        )
        try:
            while _still_runs(top):
                while_waiting()
                if changing:
                    processes = _both(processes, changing())
        finally:
            top.terminate()
            top.wait()
    if top.returncode != 0:
        raise RacetrackError(f"top failed with exit code {top.returncode}: see top_details.log.")
    screens = parse_screens((folder.path / "top_details.log").read_text().splitlines())[1:]
    if len(screens) != samples:
        raise RacetrackError(
            f"top printed {len(screens)} samples instead of {samples}: see top_details.log."
        )
    taken = {
        name: [_add_up(screen, group, may_be_gone=changing is not None) for screen in screens]
        for name, group in processes.items()
    }
    _write_samples(taken, folder)
    return taken


def parse_screens(lines: Iterable[str]) -> list[dict[int, Sample]]:
    """Return the samples by process id of each screen of `top -b -E k -e k`."""
    screens: list[dict[int, Sample]] = []
    columns: list[str] = []
    for words in (line.split() for line in lines):
        if words[:1] == ["top"] and "-" in words[1:2]:
            screens.append({})
            columns = []
        elif words[:2] == ["PID", "USER"]:
            columns = words
        elif columns and words:
            row = dict(zip(columns, words, strict=False))
            rss_gib = _kib(row["RES"]) / KIB_PER_GIB
            screens[-1][int(row["PID"])] = Sample(float(row["%CPU"]), rss_gib)
    return screens


def _kib(memory: str) -> float:
    """Return KiB from a memory column such as `4376`, or `1.2g` where the value is too wide."""
    units = {"m": 1024, "g": 1024**2, "t": 1024**3}
    return float(memory.rstrip("mgt")) * units.get(memory[-1], 1)


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    """Sleep, then return whether the process still runs. `Popen.wait` with a timeout would poll 20
    times a second."""
    time.sleep(LOOK_EVERY_S)
    return process.poll() is None


def _both(
    before: Mapping[str, Sequence[int]], now: Mapping[str, Sequence[int]]
) -> dict[str, Sequence[int]]:
    """Return the union of the two process lists of each service."""
    return {name: list(dict.fromkeys([*before[name], *now.get(name, ())])) for name in before}


def _add_up(screen: Mapping[int, Sample], pids: Sequence[int], *, may_be_gone: bool) -> Sample:
    rows = [screen[pid] for pid in pids if pid in screen]
    if not rows and not may_be_gone:
        raise RacetrackError(f"top shows none of the processes {list(pids)}: see top_details.log.")
    return Sample(sum(row.cpu_pct for row in rows), sum(row.rss_gib for row in rows))


def _write_samples(taken: Mapping[str, Sequence[Sample]], folder: RunFolder) -> None:
    with folder.open_for_lines("top_samples.log") as log:
        for name, samples in taken.items():
            for number, sample in enumerate(samples, start=1):
                log.write(
                    f"name={name}, sample={number}, CPU_PCT={sample.cpu_pct:g},"
                    f" RES_GiB={sample.rss_gib:.4f}\n"
                )
