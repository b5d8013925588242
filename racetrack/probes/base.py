"""Base of all probes, threads that write into the run folder, and the file of curves."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder

LOOK_EVERY_S = 0.05
# Returns whether an expected outage lasts or has ended since a time of the monotonic clock.
HadOutage = Callable[[float], bool]


def no_outage(_since_s: float) -> bool:
    """Return False: no outage is expected."""
    return False


class Probe(ABC):
    """Thread that probes in `run`, which a subclass implements and which returns soon after
    `stopping` is set. An exception in it is raised in the main thread, by `check`."""

    name: str  # subject of error messages
    # Kind of error that `check` raises; a probe that fails only if the engine does has another.
    failure_kind: type[RacetrackError] = RacetrackError

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    @abstractmethod
    def run(self) -> None:
        """Probe until `stopping` is set."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def check(self) -> None:
        """Raise the error that ended the probe, if there is one.

        Raises:
            RacetrackError: the probe has failed; the message names it and the reason.
        """
        if self._failure:
            raise self.failure_kind(
                f"{self.name} can't be read any more: {self._failure}"
            ) from self._failure

    def stop(self) -> None:
        """End the thread once it has written what has already arrived."""
        self.stopping.set()
        if self._thread.ident:
            self._thread.join()

    def follow(self, take_all: Callable[[], None], had_outage: HadOutage) -> None:
        """Call `take_all` until it returns; call it again if it fails during an expected outage."""
        while True:
            began_s = time.monotonic()
            try:
                take_all()
                break
            except Exception:
                if self.stopping.is_set() or not had_outage(began_s):
                    raise
            while had_outage(time.monotonic()) and not self.stopping.wait(LOOK_EVERY_S):
                pass

    def _guarded(self) -> None:
        try:
            self.run()
        except Exception as failure:  # noqa: BLE001  # `check` raises it in the main thread
            if not self.stopping.is_set():
                self._failure = failure


CURVES_HEADER = "at_ms,curve,partition,count\n"


class CurvesFile:
    """`curves.csv`: rows `at_ms,curve,partition,count` with epoch milliseconds, one of `due`,
    `handed_over`, `published` and `processed`, and a count since the topic was created. Any thread
    may write."""

    def __init__(self, folder: RunFolder) -> None:
        self._lock = threading.Lock()
        self._csv = folder.open_for_lines("curves.csv")
        self._csv.write(CURVES_HEADER)

    def write(self, at_ms: int, curve: str, counts: Iterable[tuple[int, int]]) -> None:
        """Write one row for each (partition, count)."""
        rows = "".join(f"{at_ms},{curve},{partition},{count}\n" for partition, count in counts)
        with self._lock:
            self._csv.write(rows)

    def close(self) -> None:
        """Close the file; nothing may be written afterwards."""
        self._csv.close()
