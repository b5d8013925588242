"""CPU time and memory of services and of the harness itself, from the kernel's own accounting."""

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from racetrack.clock import now_ms
from racetrack.host import stat_fields
from racetrack.probes.base import Probe
from racetrack.results.folder import RunFolder
from racetrack.results.run import CpuTime
from racetrack.stack.contract import Accounting
from racetrack.units import BYTES_PER_GIB

TICKS_PER_S, PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
COLUMNS, EVERY_S = "at_ms,service,cpu_s,cpu_user_s,rss_gib", 1.0
LIST_EVERY_S = 5.0

Value = TypeVar("Value")


@dataclass(frozen=True)
class Usage:
    """Resources used by the processes of a service: CPU seconds so far, in user and kernel mode,
    and current resident memory in GiB."""

    user_s: float
    system_s: float
    rss_gib: float

    @property
    def cpu_s(self) -> float:
        """CPU seconds in user and kernel mode."""
        return self.user_s + self.system_s


def usage_of(pids: Sequence[int]) -> Usage:
    """Return the total usage of these processes, including the CPU time of their ended children."""
    user, system, pages = 0, 0, 0
    for fields in filter(None, (stat_fields(f"/proc/{pid}/stat") for pid in pids)):
        own_user, own_system, children_user, children_system = map(int, fields[11:15])
        user += own_user + children_user
        system += own_system + children_system
        pages += int(fields[21])
    return Usage(user / TICKS_PER_S, system / TICKS_PER_S, pages * PAGE_BYTES / BYTES_PER_GIB)


def cpu_s_of(pids: Iterable[int]) -> float:
    """Return the CPU seconds of these processes, including their ended children."""
    return sum(ticks_in(stat_fields(f"/proc/{pid}/stat")) for pid in pids) / TICKS_PER_S


def ticks_in(fields: Sequence[bytes]) -> int:
    """Return the CPU time, in ticks (TICKS_PER_S), from the fields of `/proc/<pid>/stat`. Includes
    children that have ended and were waited for."""
    return sum(map(int, fields[11:15]))


def harness_cpu_s() -> float:
    """Return the CPU seconds of this process and its ended children, such as top."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in own)


class Listed(Generic[Value]):
    """A cached list of processes. It is made again when it is older than LIST_EVERY_S, because
    listing takes much more CPU time than reading known processes."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._made: tuple[float, Value] | None = None  # when the list was made, and the list

    def __call__(self) -> Value:
        """Return the list."""
        if not self._made or time.monotonic() - self._made[0] >= LIST_EVERY_S:
            self._made = time.monotonic(), self._make()
        return self._made[1]

    def forget(self) -> None:
        """Make the list again at the next call."""
        self._made = None


class Meter:
    """Resources used by services since they first started, including the CPU time of processes that
    were killed inside `killing`.

    `processes` returns the services' processes on this machine, and `elsewhere` the usage of the
    services on other machines."""

    def __init__(
        self,
        processes: Callable[[], Mapping[str, Sequence[int]]],
        elsewhere: Callable[[], Mapping[str, Usage]] = dict,
    ) -> None:
        self._processes, self._elsewhere = processes, elsewhere
        self._pids = Listed(processes)
        self._dead: dict[str, Usage] = {}
        self._lock = threading.Lock()

    def read(self) -> dict[str, Usage]:
        """Return the usage of each service; the memory of a service without a process is 0."""
        return {**self.read_here(), **self._elsewhere()}

    def read_here(self) -> dict[str, Usage]:
        """Return the usage of each service on this machine."""
        with self._lock:
            return {
                name: self._with_dead(name, usage_of(pids)) for name, pids in self._pids().items()
            }

    def cpu_s(self, excluding: Container[str] = ()) -> float:
        """Return the total CPU seconds of all services on this machine except those in
        `excluding`."""
        with self._lock:
            live = [
                pid for name, pids in self._pids().items() if name not in excluding for pid in pids
            ]
            dead = [used.cpu_s for name, used in self._dead.items() if name not in excluding]
            return cpu_s_of(live) + sum(dead)

    def pids(self) -> Mapping[str, Sequence[int]]:
        """Return the process ids of each service, at most LIST_EVERY_S old."""
        with self._lock:
            return dict(self._pids())

    @contextlib.contextmanager
    def killing(self, services: Sequence[str]) -> Iterator[None]:
        """Keep counting the CPU time of services whose processes the caller kills inside this
        context. CPU time used between entering the context and the kill is lost."""
        with self._lock:
            pids = self._processes()
            for name in services:
                if name in pids:
                    used = self._with_dead(name, usage_of(pids[name]))
                    self._dead[name] = Usage(used.user_s, used.system_s, 0.0)
            yield
            self._pids.forget()

    def refresh(self) -> None:
        """List the processes again at the next read. Call it after starting services."""
        with self._lock:
            self._pids.forget()

    def _with_dead(self, name: str, now: Usage) -> Usage:
        dead = self._dead.get(name, Usage(0.0, 0.0, 0.0))
        return Usage(now.user_s + dead.user_s, now.system_s + dead.system_s, now.rss_gib)


def cpu_times(meter: Meter) -> dict[str, CpuTime]:
    """Return the CPU time used so far, by service."""
    return {
        name: CpuTime(user=usage.user_s, system=usage.system_s)
        for name, usage in meter.read().items()
    }


class UsageProbe(Probe):
    """Writes `usage.csv`: a row of `COLUMNS` per service every second, or every `every_s` seconds
    if that is shorter. All figures of CPU and resident memory come from this file."""

    name = "CPU and memory"
    columns = COLUMNS

    def __init__(self, meter: Meter, every_s: float, folder: RunFolder) -> None:
        super().__init__()
        self._meter, self._every_s = meter, min(every_s, EVERY_S)
        self._csv = folder.open_for_lines("usage.csv")
        self.newest: tuple[int, Mapping[str, Usage]] = (0, {})  # epoch ms, usage by service

    def run(self) -> None:
        """Sample until stopped."""
        with self._csv:
            self._csv.write(self.columns + "\n")
            for _ in self.ticks(self._every_s):
                self._write()
            self._write_rest()

    def _write_rest(self) -> None:
        """Write the remaining samples at the end; by default there are none."""

    def _write(self) -> None:
        at_ms, used = now_ms(), self._meter.read()
        self.newest = at_ms, used
        for name, usage in used.items():
            seconds = f"{usage.cpu_s:.2f},{usage.user_s:.2f}"
            self._csv.write(f"{at_ms},{name},{seconds},{usage.rss_gib:.6f}\n")


class CgroupProbe(Probe):
    """Writes `cgroup.csv`: `at_ms,service,cpu_s,memory_gib`, a row per service every `every_s`
    seconds. Unlike `usage.csv`, it includes short-lived processes such as health checks, the page
    cache, and files on tmpfs."""

    name = "The accounting of control groups"

    def __init__(
        self, accounts: Mapping[str, Accounting], every_s: float, folder: RunFolder
    ) -> None:
        super().__init__()
        self._accounts, self._every_s = accounts, every_s
        self._csv = folder.open_for_lines("cgroup.csv")

    def run(self) -> None:
        """Sample until stopped."""
        with self._csv:
            self._csv.write("at_ms,service,cpu_s,memory_gib\n")
            for _ in self.ticks(self._every_s):
                self._write()

    def _write(self) -> None:
        at_ms = now_ms()
        for name, account in self._accounts.items():
            try:
                cpu_s, memory_gib = account.cpu_s(), account.memory_bytes() / BYTES_PER_GIB
            except OSError:
                continue  # the service is down; `check_services` reports that
            self._csv.write(f"{at_ms},{name},{cpu_s:.3f},{memory_gib:.6f}\n")
