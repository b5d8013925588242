"""Free room where services keep their data and where the run folder is."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.results.run import RunArguments
from racetrack.stack import resources
from racetrack.stack.contract import DataFolder, Stack
from racetrack.workloads.contract import find_workload

LOOK_EVERY_S = 0.5
# A broker that finds no room ends in a stack trace: a run ends before that.
LEAST_BYTES, LEAST_S = 32 << 20, 2.0
LEAST_BYTES_FOR_LOGS = 8 << 20
SEGMENT_BYTES = 64 << 20  # the broker drops whole segments


class NoRoom(RacetrackError):
    """A file system that the run writes to is full, or will be in a moment."""


class RoomWatch:
    """Ends a run before a file system is full."""

    def __init__(self, stack: Stack, run_folder: Path) -> None:
        self._stack = stack
        self._logs = DataFolder(
            run_folder,
            str(resources.mount_point(run_folder)),
            "Free some, or set LOGS_FOLDER to a folder on another disk",
        )
        self._looked_s = 0.0
        self._before: dict[Path, tuple[float, int]] = {}  # when the load was set, and what was free

    def load_changes(self) -> None:
        """Reckon from now on how fast the load fills the room."""
        now_s = time.monotonic()
        self._before = {f.path: (now_s, room_in(f.path)[0]) for f in self._stack.data_folders()}

    def check(self) -> None:
        """
        Raises:
            NoRoom: a file system is nearly full.
        """
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        if (free := room_in(self._logs.path)[0]) < LEAST_BYTES_FOR_LOGS:
            raise NoRoom(
                f"no room in {self._logs.name}: {in_words(free)} left. {self._logs.remedy}."
            )
        for folder in self._stack.data_folders():
            # A container that has just ended has none: that it ended is noticed elsewhere.
            with suppress(FileNotFoundError, ProcessLookupError):
                self._check_data(folder, now_s)

    def _check_data(self, folder: DataFolder, now_s: float) -> None:
        free, total = room_in(folder.path)
        began_s, free_then = self._before.setdefault(folder.path, (now_s, free))
        per_s = (free_then - free) / (now_s - began_s) if now_s > began_s else 0.0
        if free >= max(min(LEAST_BYTES, total // 10), LEAST_S * per_s):
            return
        fills = f", this load fills it in {free_then / per_s:.0f} s" if per_s > 0 else ""
        raise NoRoom(
            f"no room in {folder.name}: {in_words(total)}{fills}."
            f" {folder.remedy}, or let the broker keep less (KAFKA_RETENTION_BYTES)."
        )


def forecasts(stack: Stack, asked: RunArguments) -> Iterator[str]:
    """A line for each file system that the load of a run will certainly fill before it ends."""
    per_s, most = kept(stack.settings, asked.pageviews_per_s)
    takes_s = asked.wait_s + asked.samples * asked.delay_s + asked.warm_up_s / 2
    for folder in stack.data_folders():
        free, _ = room_in(folder.path)
        if min(per_s * takes_s, most) > free:
            yield (
                f"{folder.name} has {in_words(free)} free: this load fills it in"
                f" {free / per_s:.0f} s, and the run takes {takes_s:.0f} s. {folder.remedy}, or let"
                " the broker keep less (KAFKA_RETENTION_BYTES)."
            )


def kept(settings: Settings, events_per_s: int) -> tuple[float, float]:
    """Bytes per second that the broker stores at this rate, and the most that it keeps of them."""
    per_event = find_workload(settings.workload).stored_bytes
    limit = settings.kafka_retention_bytes
    most = float("inf") if limit < 0 else settings.pageviews_partitions * (limit + SEGMENT_BYTES)
    return float(events_per_s * per_event), float(most)


def room_in(folder: Path) -> tuple[int, int]:
    """Free and total bytes of the file system that a folder is on."""
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize


def in_words(size: int) -> str:
    """1,181,116,006 → `1.1 GiB`."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
