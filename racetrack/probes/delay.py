"""Writes down what the engine says of its progress, when it says it."""

import time
from collections.abc import Callable

from racetrack.engines.contract import Engine, Progress, Summary
from racetrack.errors import EngineFailed
from racetrack.probes.curves import CurvesFile
from racetrack.probes.thread import LOOK_EVERY_S, Probe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Stack


class DelayProbe(Probe):
    """Follows the engine's two progress views: the summary into `<engine>_sample_dt.log`, a line
    per update, and each partition's count into the `processed` curve."""

    failure_kind = EngineFailed

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        curves: CurvesFile,
        excused: Callable[[float], bool] = lambda _since_s: False,
    ) -> None:
        super().__init__()
        self._excused = excused
        self.counted: dict[int, int] = {}  # partition -> the engine's latest count
        self._lost_ms: int | None = None
        self.name = f"The progress of {engine.title}"
        self.newest: Summary | None = None
        self._engine, self._stack, self._curves = engine, stack, curves
        self._dt_log = folder.open_for_lines(f"{engine.name}_sample_dt.log")

    def wait_until(
        self,
        reached: Callable[[Summary], bool],
        deadline_s: float,
        meanwhile: Callable[[], None],
    ) -> bool:
        """Wait until the newest summary satisfies `reached`; False if it did not in time.

        `meanwhile` is called at every look and may raise to end the wait.
        """
        give_up = time.monotonic() + deadline_s
        while time.monotonic() < give_up:
            meanwhile()
            if self.newest and reached(self.newest):
                return True
            time.sleep(LOOK_EVERY_S)
        return False

    def run(self) -> None:
        """Take what the engine tells; ask it again if it was killed on purpose meanwhile."""
        with self._dt_log:
            self.follow(self._take_all, self._excused)
            self._write_loss()

    def lost(self, at_ms: int) -> None:
        """The engine was killed, and all that it had counted is gone with it: the curve falls to
        zero at this time (epoch milliseconds)."""
        self._lost_ms, self.newest = at_ms, None

    def _take_all(self) -> None:
        for update in self._engine.updates(self._stack, self.stopping):
            if self._lost_ms is not None and update.timestamp_ms >= self._lost_ms:
                self._write_loss()
            if isinstance(update, Summary):
                self._take_summary(update)
            else:
                self._take_progress(update)

    def _write_loss(self) -> None:
        """Here, so that the rows of the curve stay in the order of their times."""
        if self._lost_ms is not None:
            zeros = [(partition, 0) for partition in sorted(self.counted)]
            self._curves.write(self._lost_ms, "processed", zeros)
            self._lost_ms = None

    def _take_summary(self, now: Summary) -> None:
        self._dt_log.write(
            f"timestamp={now.timestamp_ms}, total={now.total},"
            f" max_received_at={now.max_received_at_ms}, dt_ms={now.dt_ms:g}\n"
        )
        if self._lost_ms is None:
            self.newest = now

    def _take_progress(self, now: Progress) -> None:
        self.counted[now.partition] = now.total
        self._curves.write(now.timestamp_ms, "processed", [(now.partition, now.total)])
