"""Writes down what the engine says of its progress, when it says it."""

import threading
import time
from collections.abc import Callable

from racetrack.engines.contract import Engine, Progress, Summary
from racetrack.errors import RacetrackError
from racetrack.runfolder import RunFolder
from racetrack.stack.contract import Stack

LOOK_EVERY_S = 0.05


class DelayProbe:
    """A thread that follows the engine's two progress views.

    Leaves `<engine>_sample_dt.log` (a line per update of the summary) and `progress.csv`
    (`timestamp_ms,seen_at_ms,partition,total,max_received_at_ms`: epoch milliseconds when the
    engine had counted, and when the harness learned of it).
    """

    def __init__(self, engine: Engine, stack: Stack, folder: RunFolder) -> None:
        self.newest: Summary | None = None
        self._engine, self._stack = engine, stack
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._dt_log = folder.open_for_lines(f"{engine.name}_sample_dt.log")
        self._progress_csv = folder.open_for_lines("progress.csv")
        self._progress_csv.write("timestamp_ms,seen_at_ms,partition,total,max_received_at_ms\n")
        self._thread = threading.Thread(target=self._follow, name="delay", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

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
            self._stop.wait(LOOK_EVERY_S)
        return False

    def check(self) -> None:
        """Raise what ended the thread, if anything did."""
        if self._failure:
            raise RacetrackError(
                f"The progress of {self._engine.title} can't be read any more: {self._failure}"
            ) from self._failure

    def stop(self) -> None:
        """End the thread after it has taken in what was already said."""
        self._stop.set()
        if self._thread.ident:
            self._thread.join()
        self._dt_log.close()
        self._progress_csv.close()

    def _follow(self) -> None:
        try:
            for update in self._engine.updates(self._stack, self._stop):
                if isinstance(update, Summary):
                    self._take_summary(update)
                else:
                    self._take_progress(update)
        except Exception as failure:  # noqa: BLE001  # it is raised where the main thread looks
            self._failure = failure

    def _take_summary(self, now: Summary) -> None:
        self._dt_log.write(
            f"timestamp={now.timestamp_ms}, total={now.total},"
            f" max_received_at={now.max_received_at_ms}, dt_ms={now.dt_ms:g}\n"
        )
        self.newest = now

    def _take_progress(self, now: Progress) -> None:
        seen_at_ms = time.time_ns() // 1_000_000
        self._progress_csv.write(
            f"{now.timestamp_ms},{seen_at_ms},{now.partition},{now.total},"
            f"{now.max_received_at_ms}\n"
        )
