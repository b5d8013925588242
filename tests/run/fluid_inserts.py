"""A session on a fake clock, whose inserts go through a database, CDC and an engine with known
capacities: simulates minutes at once."""

import math
from contextlib import ExitStack
from typing import TextIO

import numpy as np

from racetrack.analysis.curves import HEADER
from racetrack.config import load
from racetrack.results.folder import RunFolder
from racetrack.run.lifecycle import traced_views
from racetrack.run.session import LatestCounters
from racetrack.workloads.contract import find_workload
from tests.run.fluid_session import START_MS, FakeClock, OnClock

STEP_S = 0.1
MARKS_PER_S = 12
CPU_S_EACH = 1e-4
BEFORE_THE_RACE = 500
VIEW = "item_summary.orders"


class FluidInserts(OnClock):
    """A fake session for the capacity search. `stages_per_s` are the capacities of database, CDC
    and engine, in inserts per second. The engine updates its view every `cycle_s`."""

    def __init__(
        self, clock: FakeClock, folder: RunFolder, stages_per_s: tuple[float, float, float]
    ) -> None:
        super().__init__(clock)
        self._stages_per_s = stages_per_s
        self._come = np.zeros(4)  # inserts due, in the database, the topic, the view
        self._per_s = 0.0
        self._due = [(0.0, 0.0)]
        self._seen: dict[tuple[str, int], int] = {}
        self._partitions = load({}).pageviews_partitions
        self.cycle_s = 0.5
        with folder.recording() as run:
            run.traced_views = traced_views(find_workload(load({}).workload))
        self._closing = ExitStack()
        self._curves = self._file(folder, "curves.csv", ",".join(HEADER))
        self._purchases = self._file(
            folder, "purchases.csv", "at_ms,due,refused,done,captured,sent_ms"
        )
        self._marks = self._file(folder, "tracer_events.csv", "at_ms,newest,due_ms,committed")
        self._views = self._file(folder, "views.csv", "at_ms,view,partition,value")

    def _file(self, folder: RunFolder, name: str, titles: str) -> TextIO:
        file = self._closing.enter_context(folder.open_for_lines(name))
        file.write(f"{titles}\n")
        return file

    def offer(self, per_s: int, of: str) -> None:
        assert of == "purchases"
        self._per_s = per_s

    def set_rate(self, per_s: int, of: str) -> int:
        self.offer(per_s, of)
        return self._clock.now_ms()

    def latest_counters(self) -> LatestCounters:
        due, done = int(self._come[0]), int(self._come[1])
        newest = self._newest_mark()
        counts = {
            "now_ms": self._clock.now_ms(),
            "purchases": {"due": due - newest + 5, "refused": 5, "done": done},
            "tracer_events": {
                "due": newest,
                "refused": 0,
                "newest": [newest, START_MS + 1000 * newest / MARKS_PER_S],
                "rate": MARKS_PER_S,
            },
        }
        cpu_s = {"loadgen": 3 * self._clock.now_s, "debezium": CPU_S_EACH * self._come[3]}
        return LatestCounters(counts, self._seen, cpu_s)

    def stop(self) -> None:
        self._closing.close()

    def _let_pass(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            self._clock.now_s = round(self._clock.now_s + STEP_S, 1)
            self._come[0] += (self._per_s + MARKS_PER_S) * STEP_S
            for stage, per_s in enumerate(self._stages_per_s, start=1):
                done = self._come[stage] + per_s * STEP_S
                self._come[stage] = min(self._come[stage - 1], done)
            self._due.append((self._clock.now_s, self._come[0]))
            self._write()

    def _write(self) -> None:
        at_ms, newest = self._clock.now_ms(), self._newest_mark()
        due, done, captured = map(int, self._come[:3])
        self._purchases.write(f"{at_ms},{due + 5},5,{done},{captured + BEFORE_THE_RACE},{at_ms}\n")
        if newest:
            due_ms = START_MS + 1000 * newest / MARKS_PER_S
            self._marks.write(f"{at_ms},{newest},{due_ms:.0f},{newest}\n")
        for name in ("due", "handed_over", "published"):
            self._curves.write(f"{at_ms},{name},0,{round(50 * self._clock.now_s)}\n")
        if math.isclose(self._clock.now_s % self.cycle_s, 0, abs_tol=1e-6):
            self._curves.write(f"{at_ms},processed,0,{round(50 * self._clock.now_s)}\n")
            self._tell_views(at_ms)

    def _tell_views(self, at_ms: int) -> None:
        """Write the tracer events that the view shows: those that were due before its newest
        insert."""
        times_s, due = zip(*self._due, strict=True)
        rows = math.floor(float(np.interp(self._come[3], due, times_s)) * MARKS_PER_S + 1e-6)
        for partition in range(self._partitions):
            count = sum(n // 2 % self._partitions == partition for n in range(rows))
            self._seen[VIEW, partition] = count
            self._views.write(f"{at_ms},{VIEW},{partition},{count}\n")

    def _newest_mark(self) -> int:
        return math.floor(self._clock.now_s * MARKS_PER_S + 1e-6)
