"""Writes down which marks an engine's views hold, when they say so."""

from collections.abc import Callable

from racetrack.engines.contract import Engine
from racetrack.errors import EngineFailed
from racetrack.probes.thread import Probe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import find_workload

FILE, HEADER = "views.csv", "at_ms,view,partition,value\n"


class ViewsProbe(Probe):
    """Follows the workload's traced views into `views.csv`, a row for each change: epoch
    milliseconds, the view, the partition, and what `racetrack.engines.contract.Seen` says of it."""

    failure_kind = EngineFailed

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        excused: Callable[[float], bool] = lambda _since_s: False,
    ) -> None:
        super().__init__()
        self._excused = excused
        self.name = f"The views of {engine.title}"
        self._engine, self._stack = engine, stack
        self._traced = find_workload(stack.settings.workload).traced_views
        self._csv = folder.open_for_lines(FILE)
        self.newest: dict[tuple[str, int], int] = {}  # by view and partition: what it said last

    def run(self) -> None:
        """Take what the engine tells."""
        with self._csv:
            self._csv.write(HEADER)
            self.follow(self._take_all, self._excused)

    def _take_all(self) -> None:
        for seen in self._engine.seen(self._stack, self._traced, self.stopping):
            self.newest[seen.view, seen.partition] = seen.value
            row = seen.timestamp_ms, seen.view, seen.partition, seen.value
            self._csv.write(",".join(map(str, row)) + "\n")
