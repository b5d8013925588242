"""`Probe`, the base class of the threads that sample into the run folder, and `CurvesFile`."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

from racetrack.errors import RacetrackError
from racetrack.results.folder import RunFolder

LOOK_EVERY_S = 0.05
# A function that returns whether there was an expected outage at or after a time of the monotonic
# clock.
HadOutage = Callable[[float], bool]


def no_outage(_since_s: float) -> bool:
    """Return False, for probes of services that have no expected outages."""
    return False


class Probe(ABC):
    """A thread that samples one thing. A subclass implements `run`, which must return soon after
    `stopping` is set. `check` raises an exception of `run` again, in the main thread."""

    name: str  # subject of error messages
    # Class of the error that `check` raises. Probes that fail only if the engine fails override it.
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
            RacetrackError: the probe has failed; the message names the probe and the reason.
        """
        if self._failure:
            raise self.failure_kind(
                f"{self.name} can't be read any more: {self._failure}"
            ) from self._failure

    def stop(self) -> None:
        """End the thread once it has written the data that has already arrived."""
        self.stopping.set()
        if self._thread.ident:
            self._thread.join()

    def ticks(self, every_s: float) -> Iterator[None]:
        """Yield now and at fixed times, so that delays do not add up, until stopped. Times that
        have passed during a longer delay are skipped."""
        due_s = time.monotonic()
        while not self.stopping.wait(max(0.0, due_s - time.monotonic())):
            yield
            due_s = max(due_s + every_s, time.monotonic())

    def follow(self, take_all: Callable[[], None], had_outage: HadOutage) -> None:
        """Call `take_all`. If it fails because of an expected outage, call it again after the
        outage."""
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


# A function that is called with rows that were written: their time, their curve, and a (partition,
# count) for each.
CurvesListener = Callable[[int, str, list[tuple[int, int]]], None]
CURVES_HEADER = "at_ms,curve,partition,count\n"


class CurvesFile:
    """`curves.csv`: counts of events over time. Any thread may write.

    Columns: `at_ms` (epoch milliseconds), `curve` (`due`, `handed_over`, `published` or
    `processed`), `partition`, and `count` (since the topic was created).
    """

    def __init__(self, folder: RunFolder) -> None:
        self._lock = threading.Lock()
        self._csv = folder.open_for_lines("curves.csv")
        self._csv.write(CURVES_HEADER)
        self.listeners: list[CurvesListener] = []

    def write(self, at_ms: int, curve: str, counts: Iterable[tuple[int, int]]) -> None:
        """Write one row for each (partition, count)."""
        counted = list(counts)
        rows = "".join(f"{at_ms},{curve},{partition},{count}\n" for partition, count in counted)
        with self._lock:
            self._csv.write(rows)
        for listener in self.listeners:
            listener(at_ms, curve, counted)

    def close(self) -> None:
        """Close the file; nothing may be written afterwards."""
        self._csv.close()
