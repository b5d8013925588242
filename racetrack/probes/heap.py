"""Heaps of JVMs over time, as far as they are known without a collection."""

from collections.abc import Callable, Mapping, Sequence

from racetrack.clock import now_ms
from racetrack.probes.base import Probe
from racetrack.probes.memory import Heap, NoLiveHeap, heap_of, is_jvm
from racetrack.probes.usage import BYTES_PER_GIB
from racetrack.results.folder import RunFolder

EVERY_S = 10.0
# Without a collection for long, garbage may fill a heap up to here. Beyond, all of it counts.
NEARLY_FULL = 0.9


class HeapProbe(Probe):
    """Writes `heap.csv`: `at_ms,service,used_gib,limit_gib,why_not`, a row per service every
    EVERY_S. The content includes garbage. If a heap can't be read, there is one row with the reason
    until it can be read again. `floors` has, by service, what the last collection left, and
    `unknown` why the heap could not be read."""

    name = "The heaps"

    def __init__(
        self,
        processes: Callable[[], Mapping[str, Sequence[int]]],
        folder: RunFolder,
        read: Callable[[int], Heap] = heap_of,
        is_jvm: Callable[[int], bool] = is_jvm,
    ) -> None:
        super().__init__()
        self._processes, self._read, self._is_jvm = processes, read, is_jvm
        self._csv = folder.open_for_lines("heap.csv")
        self._before: dict[str, Heap] = {}
        self.floors: dict[str, Heap] = {}
        self.unknown: dict[str, str] = {}

    def run(self) -> None:
        """Read all heaps again and again."""
        with self._csv:
            self._csv.write("at_ms,service,used_gib,limit_gib,why_not\n")
            while True:
                for service, pids in self._processes().items():
                    self.take(service, pids)
                if self.stopping.wait(EVERY_S):
                    return

    def take(self, service: str, pids: Sequence[int]) -> None:
        """Read the heaps of a service's JVMs. A JVM that does not answer may be paused, killed or
        busy, so it is tried again."""
        try:
            heaps = [self._read(pid) for pid in pids if self._is_jvm(pid)]
        except NoLiveHeap as reason:
            self._write_reason(service, str(reason).replace('"', "'"))
            return
        self.unknown.pop(service, None)
        if not heaps:
            return
        now = Heap(sum(heap.used for heap in heaps), sum(heap.limit for heap in heaps))
        used_gib, limit_gib = now.used / BYTES_PER_GIB, now.limit / BYTES_PER_GIB
        self._csv.write(f"{now_ms()},{service},{used_gib:.6f},{limit_gib:.6f},\n")
        before = self._before.get(service)
        self._before[service] = now
        if before and (now.used < before.used or now.used > NEARLY_FULL * now.limit):
            self.floors[service] = now

    def _write_reason(self, service: str, why: str) -> None:
        """Write why a heap can't be read, once."""
        if service not in self.unknown:
            self._csv.write(f'{now_ms()},{service},,,"{why}"\n')
        self.unknown[service] = why
