"""Usage of services that run elsewhere, as the user's Prometheus reports it."""

import time
from collections.abc import Callable, Mapping, Sequence

from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.probes.usage import BYTES_PER_GIB, Usage
from racetrack.stack.prometheus import Prometheus, Queries, Refused

WITHIN_S = 1.0  # the interval of the samples
# While Prometheus does not answer, the last sample is used. After this long, the run fails.
LOST_S = 30.0


def usage_now(settings: Settings, wanted: Sequence[Queries]) -> Callable[[], Mapping[str, Usage]]:
    """Return a function that reads the usage of these services, for use in a `Meter`.

    It raises RacetrackError if there was no answer for LOST_S.
    """
    if not wanted:
        return dict
    prometheus, usage = Prometheus(settings, WITHIN_S), ReportedUsage()

    def read() -> Mapping[str, Usage]:
        for each in wanted:
            try:
                cpu_s, memory_bytes = prometheus.cpu_s(each), prometheus.memory_bytes(each)
            except Refused as refusal:
                usage.miss(each.service, str(refusal))
            else:
                usage.take(each.service, cpu_s, memory_bytes)
        return usage.by_service

    return read


class ReportedUsage:
    """Usage of services from counters, which begin again at zero when a service restarts."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._missed_since_s: dict[str, float] = {}
        self._last_s: dict[str, float] = {}  # latest value of the counter
        self._before_s: dict[str, float] = {}  # CPU seconds until the counter started again
        self.by_service: dict[str, Usage] = {}

    def take(self, service: str, cpu_s: float, memory_bytes: float) -> None:
        """Add a sample: the value of a counter of CPU seconds, and bytes of memory."""
        self._missed_since_s.pop(service, None)
        last_s = self._last_s.get(service, 0.0)
        before_s = self._before_s.get(service, 0.0) + (last_s if cpu_s < last_s else 0.0)
        self._last_s[service], self._before_s[service] = cpu_s, before_s
        self.by_service[service] = Usage(before_s + cpu_s, 0.0, memory_bytes / BYTES_PER_GIB)

    def miss(self, service: str, why: str) -> None:
        """Record that there is no sample.

        Raises:
            RacetrackError: there has been no sample for LOST_S.
        """
        since_s = self._missed_since_s.setdefault(service, self._now_s())
        if self._now_s() - since_s > LOST_S:
            raise RacetrackError(
                f"Prometheus reported nothing of {service} for {LOST_S:.0f} s. {why}"
            )
