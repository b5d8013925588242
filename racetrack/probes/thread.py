"""What every probe is: a thread that writes into the run folder until it is told to stop."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from racetrack.errors import RacetrackError

LOOK_EVERY_S = 0.05


class Probe(ABC):
    """A subclass says what to do in `run`, which returns soon after `stopping` is set. Whatever
    ends it before is kept, and raised in the main thread by `check`."""

    name: str  # as a person knows what it probes
    # What `check` raises: another kind of error for a probe that fails only if the engine does.
    failure_kind: type[RacetrackError] = RacetrackError

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    @abstractmethod
    def run(self) -> None:
        """Probe until `stopping` is set."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def check(self) -> None:
        """Raise what ended the probe, if anything did.

        Raises:
            RacetrackError: says which probe, and why.
        """
        if self._failure:
            raise self.failure_kind(
                f"{self.name} can't be read any more: {self._failure}"
            ) from self._failure

    def stop(self) -> None:
        """End the thread, after it has taken in what is already there."""
        self.stopping.set()
        if self._thread.ident:
            self._thread.join()

    def follow(self, take_all: Callable[[], None], excused: Callable[[float], bool]) -> None:
        """Do this until it ends by itself, and again if it fails while what it follows is away on
        purpose: `excused` says whether it is, or has been since a time of the monotonic clock."""
        while True:
            asked_s = time.monotonic()
            try:
                take_all()
                break
            except Exception:
                if self.stopping.is_set() or not excused(asked_s):
                    raise
            while excused(time.monotonic()) and not self.stopping.wait(LOOK_EVERY_S):
                pass

    def _guarded(self) -> None:
        try:
            self.run()
        except Exception as failure:  # noqa: BLE001  # raised where the main thread looks
            if not self.stopping.is_set():
                self._failure = failure
