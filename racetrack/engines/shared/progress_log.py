"""Reads an engine's progress from its service's log, from the beginning of the log. The engine
writes the lines of one update together; `<ms>` means epoch milliseconds, and `<partition>` a
partition of the main topic:

    RACETRACK dt timestamp=<ms>, total=<n>, max_received_at=<ms>, dt_ms=<ms>
    RACETRACK progress timestamp=<ms>, partition=<partition>, total=<n>, max_received_at=<ms>
    RACETRACK seen timestamp=<ms>, view=<traced view>, partition=<partition>, value=<n>
    RACETRACK failed timestamp=<ms>, listener=<name>, error=<text>

There is a `progress` line for each partition that changed, and a `seen` line for each tracer row
that changed. `failed` ends the run.
"""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

from racetrack.engines.contract import DemoError, Progress, Seen, Summary

LOOK_EVERY_S = 0.2
_SUMMARY = re.compile(
    r"RACETRACK dt timestamp=(\d+), total=(\d+), max_received_at=(-?\d+), dt_ms=(-?[\d.]+)$"
)
_PROGRESS = re.compile(
    r"RACETRACK progress timestamp=(\d+), partition=(\d+), total=(\d+), max_received_at=(-?\d+)$"
)
_SEEN = re.compile(r"RACETRACK seen timestamp=(\d+), view=([\w.]+), partition=(\d+), value=(\d+)$")
_FAILED = re.compile(r"RACETRACK failed timestamp=\d+, listener=[^,]+, error=(.*)$")


def updates_of(log: Path, stop: threading.Event) -> Iterator[Summary | Progress]:
    """Yield every update of the progress views that is logged, until `stop` is set.

    Raises:
        DemoError: the engine reported that one of its views failed.
    """
    for line in follow(log, stop):
        if found := _SUMMARY.search(line):
            timestamp_ms, total, newest_ms, dt_ms = found.groups()
            yield Summary(int(timestamp_ms), int(total), int(newest_ms), float(dt_ms))
        elif found := _PROGRESS.search(line):
            yield Progress(*map(int, found.groups()))
        elif found := _FAILED.search(line):
            raise DemoError(f"a table of the demo failed: {found[1]}")


def seen_in(log: Path, stop: threading.Event, look_every_s: float = LOOK_EVERY_S) -> Iterator[Seen]:
    """Yield every update of a tracer row that is logged, until `stop` is set. New lines are read
    every `look_every_s` seconds.

    Raises:
        DemoError: the engine reported that one of its views failed.
    """
    for line in follow(log, stop, look_every_s):
        if found := _SEEN.search(line):
            timestamp_ms, view, partition, value = found.groups()
            yield Seen(int(timestamp_ms), view, int(partition), int(value))
        elif found := _FAILED.search(line):
            raise DemoError(f"a table of the demo failed: {found[1]}")


def follow(path: Path, stop: threading.Event, look_every_s: float = LOOK_EVERY_S) -> Iterator[str]:
    """Yield the lines of a file from its beginning, then new lines as they are written, until
    `stop` is set. The file is read every `look_every_s` seconds.

    Lines that exist when `stop` is set are still yielded, except a last line without a line end.
    """
    rest = ""
    with path.open(encoding="utf-8", errors="replace") as file:
        while True:
            last_look = stop.is_set()
            *lines, rest = (rest + file.read()).split("\n")
            yield from lines
            if last_look:
                return
            stop.wait(look_every_s)
