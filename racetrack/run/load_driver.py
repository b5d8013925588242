"""Probe thread that sets the generator's rate according to a load profile."""

import time
from collections.abc import Callable

from racetrack.clock import now_ms
from racetrack.probes.base import Probe
from racetrack.results.folder import RunFolder
from racetrack.results.run import LoadLog
from racetrack.workloads.load_profile import NEVER_S, LoadProfile

FILE = "load.csv"
HEADER = "at_ms,pageviews_per_s\n"


class LoadDriver(Probe):
    """Sets each rate of a profile at its time after `start`. Writes each rate and the time at which
    it was set (epoch milliseconds) into `load.csv` or another file."""

    name = "The load profile"

    def __init__(
        self,
        profile: LoadProfile,
        offer: Callable[[int], None],
        folder: RunFolder,
        file: str = FILE,
    ) -> None:
        super().__init__()
        self._file = file
        self._profile, self._offer, self._folder = profile, offer, folder
        self._began_s = 0.0
        self._log: LoadLog | None = None

    def start(self) -> None:
        """Start the thread. The times of the profile count from now."""
        self._began_s = time.monotonic()
        self._log = LoadLog(profile=str(self._profile), from_ms=now_ms())
        super().start()

    @property
    def is_over(self) -> bool:
        """True if the duration of the profile has passed."""
        return time.monotonic() - self._began_s >= self._profile.duration_s

    def record(self) -> LoadLog | None:
        """Return the record of the load so far, for `run.json`; None before the start."""
        return self._log.model_copy() if self._log else None

    def run(self) -> None:
        """Set the rates until stopped."""
        at_s = 0.0
        with self._folder.open_for_lines(self._file) as file:
            file.write(HEADER)
            while True:
                rate = self._profile.rate_until_next_change(at_s)
                self._offer(rate)
                set_ms = now_ms()
                file.write(f"{set_ms},{rate}\n")
                self._note_peak(at_s, set_ms)
                at_s = self._profile.next_change_s(at_s)
                if at_s == NEVER_S:
                    return
                if self.stopping.wait(max(0.0, self._began_s + at_s - time.monotonic())):
                    return

    def _note_peak(self, at_s: float, set_ms: int) -> None:
        """Record when a rate was set that begins or ends the peak."""
        if self._log and (peak_s := self._profile.peak_s):
            if at_s == peak_s[0]:
                self._log.peak_from_ms = set_ms
            if at_s == peak_s[1]:
                self._log.peak_until_ms = set_ms
