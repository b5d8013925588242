"""What every probe is: a thread that writes into the run folder until it is told to stop."""

import threading
from abc import ABC, abstractmethod

from racetrack.errors import RacetrackError


class Probe(ABC):
    """A subclass says what to do in `run`, which returns soon after `stopping` is set. Whatever
    ends it before is kept, and raised in the main thread by `check`."""

    name: str  # as a person knows what it probes

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
            raise RacetrackError(f"{self.name} can't be read any more: {self._failure}") from (
                self._failure
            )

    def stop(self) -> None:
        """End the thread, after it has taken in what is already there."""
        self.stopping.set()
        if self._thread.ident:
            self._thread.join()

    def _guarded(self) -> None:
        try:
            self.run()
        except Exception as failure:  # noqa: BLE001  # raised where the main thread looks
            if not self.stopping.is_set():
                self._failure = failure
