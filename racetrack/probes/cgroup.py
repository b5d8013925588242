"""The kernel's own account of each service, where services are kept apart (containers)."""

import time
from collections.abc import Mapping

from racetrack.clock import now_ms
from racetrack.probes.thread import Probe
from racetrack.probes.usage import BYTES_PER_GIB
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Accounting


class CgroupProbe(Probe):
    """Keeps `cgroup.csv`: `at_ms,service,cpu_s,memory_gib`, a row per service every `every_s`
    seconds. It counts processes that have come and gone, such as health checks, and in its memory
    what is cached and what stands on tmpfs: `usage.csv` counts neither."""

    name = "The accounts of the control groups"

    def __init__(
        self, accounts: Mapping[str, Accounting], every_s: float, folder: RunFolder
    ) -> None:
        super().__init__()
        self._accounts, self._every_s = accounts, every_s
        self._csv = folder.open_for_lines("cgroup.csv")

    def run(self) -> None:
        """Sample on a grid, so that lateness does not add up."""
        due_s = time.monotonic()
        with self._csv:
            self._csv.write("at_ms,service,cpu_s,memory_gib\n")
            while not self.stopping.wait(max(0.0, due_s - time.monotonic())):
                self._write()
                due_s += self._every_s

    def _write(self) -> None:
        at_ms = now_ms()
        for name, account in self._accounts.items():
            try:
                cpu_s, memory_gib = account.cpu_s(), account.memory_bytes() / BYTES_PER_GIB
            except OSError:
                continue  # a service that is down has no account; whoever watches it says so
            self._csv.write(f"{at_ms},{name},{cpu_s:.3f},{memory_gib:.6f}\n")
