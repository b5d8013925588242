"""Writes down what the engine says of its progress, when it says it."""

import time
from collections.abc import Callable

from racetrack.engines.contract import Engine, Progress, Summary
from racetrack.probes.curves import CurvesFile
from racetrack.probes.thread import Probe
from racetrack.runfolder import RunFolder
from racetrack.stack.contract import Stack

LOOK_EVERY_S = 0.05


class DelayProbe(Probe):
    """Follows the engine's two progress views: the summary into `<engine>_sample_dt.log`, a line
    per update, and each partition's count into the `processed` curve."""

    def __init__(self, engine: Engine, stack: Stack, folder: RunFolder, curves: CurvesFile) -> None:
        super().__init__()
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
        """Take what the engine tells."""
        with self._dt_log:
            for update in self._engine.updates(self._stack, self.stopping):
                if isinstance(update, Summary):
                    self._take_summary(update)
                else:
                    self._take_progress(update)

    def _take_summary(self, now: Summary) -> None:
        self._dt_log.write(
            f"timestamp={now.timestamp_ms}, total={now.total},"
            f" max_received_at={now.max_received_at_ms}, dt_ms={now.dt_ms:g}\n"
        )
        self.newest = now

    def _take_progress(self, now: Progress) -> None:
        self._curves.write(now.timestamp_ms, "processed", [(now.partition, now.total)])
