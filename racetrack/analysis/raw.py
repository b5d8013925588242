"""Readers of the raw files of a run folder. In a live run, the last line may be incomplete.

`folder` is that of an engine; files that all engines of a run share are found from there.
"""

import csv
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from racetrack.errors import UnreadableFile
from racetrack.metrics import CORE_SPEED, LIVE_HEAP, MEMORY_READ, RSS
from racetrack.results.folder import finite_number, shared_file, text_of

Parsed = TypeVar("Parsed")
Ints = NDArray[np.int64]
AT_MS = "at_ms"
RUN_AT_MOST_MS = 7 * 24 * 3_600_000

_DT_LINE = re.compile(
    r"timestamp=(\d+), total=(\d+), max_received_at=(-?\d+), dt_ms=(-?[\d.]+(?:e[+-]?\d+)?)"
)
RESOURCES = ("cpu", "memory", "io")
# A pod's memory counts from this long before its first reading until this long after its last one.
REACH_MS = 1_500
_TOP_LINE = re.compile(r"name=(\S+), sample=\d+, CPU_PCT=([\d.e+-]+), RES_GiB=([\d.]+)")


@dataclass(frozen=True)
class Arrival:
    """Cumulative event counts of the generator at `at_ms` (epoch milliseconds)."""

    at_ms: int
    due: int
    handed_over: int


@dataclass(frozen=True)
class Delay:
    """One update of the engine's summary; times in epoch milliseconds."""

    timestamp_ms: int
    total: int
    max_received_at_ms: int
    dt_ms: float


@dataclass(frozen=True)
class Reading:
    """CPU seconds so far and memory in GiB of a service at `at_ms`, as the kernel reports them."""

    at_ms: int
    cpu_s: float
    cpu_user_s: float
    rss_gib: float


@dataclass(frozen=True)
class NoiseRow:
    """State of the machine at `at_ms`; None for unknown values.

    Fields in seconds are cumulative since the machine or the services started. `machine_s` is the
    elapsed time summed over all cores. `waited_s` is, by resource, the time during which at least
    one process waited for it. `throttled_s` is the time for which CPU quotas stopped the run.
    """

    at_ms: int
    machine_s: float
    busy_s: float
    steal_s: float
    programs_s: float | None
    services_s: float | None
    harness_s: float
    load_1_min: float
    mhz: float | None
    waited_s: Mapping[str, float | None]
    core_mib_per_s: float | None
    throttled_s: float | None = None
    memory_read_ns: float | None = None
    machine: str = ""  # the harness's machine if empty


@dataclass(frozen=True)
class MemoryReading:
    """Memory of a service at `at_ms`, in GiB; None if the kernel denied access."""

    at_ms: int
    pss_gib: float | None
    tmpfs_gib: float | None


@dataclass(frozen=True)
class CpuPeriods:
    """Periods in which a pod with a CPU limit ran, and those in which it used up the limit: counts
    at `at_ms` since the pod was created."""

    at_ms: int
    periods: int
    throttled: int


@dataclass(frozen=True)
class TopSamples:
    """Samples of top for one service, in order of time; CPU in percent of one core."""

    cpu_pct: list[float]
    rss_gib: list[float]


@dataclass(frozen=True)
class DoneAction:
    """An action in a live session at `at_ms`, and the values of its arguments."""

    at_ms: int
    name: str
    values: str

    @property
    def text(self) -> str:
        """The action in words."""
        return f"{self.name} {self.values}".strip()


def increase(
    at_ms: Sequence[float], counts: Sequence[float], start_ms: float, end_ms: float
) -> float:
    """Return how much a cumulative count grew between two times. Between its rows it is
    interpolated linearly."""
    first, last = np.interp([start_ms, end_ms], at_ms, counts)
    return float(last - first)


def arrivals(folder: Path) -> list[Arrival]:
    """Return the rows of `arrivals.csv`."""
    return rows_of(
        required(shared_file(folder, "arrivals.csv")),
        lambda row: Arrival(int(row["at_ms"]), int(row["due"]), int(row["handed_over"])),
    )


def delays(folder: Path, engine: str) -> list[Delay]:
    """Return the lines of `<engine>_sample_dt.log`."""
    path = folder / f"{engine}_sample_dt.log"
    updates, lines = [], []
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if match := _DT_LINE.search(line):
            at, total, newest, dt = match.groups()
            updates.append(Delay(int(at), int(total), int(newest), float(dt)))
            lines.append(number)
    require_near(path, [delay.timestamp_ms for delay in updates], lines)
    return updates


def usage(folder: Path) -> dict[str, list[Reading]]:
    """Return the rows of `usage.csv`, by service; readings of pods are summed by service."""
    services: dict[str, dict[str, list[Reading]]] = {}

    def take(row: Mapping[str, str]) -> None:
        numbers = [finite_number(row[name]) for name in ("cpu_s", "cpu_user_s", RSS.key)]
        reading = Reading(int(row["at_ms"]), *numbers)
        services.setdefault(row["service"], {}).setdefault(row.get("pod", ""), []).append(reading)

    rows_of(required(shared_file(folder, "usage.csv")), take)
    if all(list(pods) == [""] for pods in services.values()):
        return {service: pods[""] for service, pods in services.items()}
    return summed_pods(services)


def summed_pods(services: Mapping[str, Mapping[str, list[Reading]]]) -> dict[str, list[Reading]]:
    """Return the usage of each service, summed over its pods, with a reading each second. Pods are
    read at different times, so the values between are interpolated. CPU time includes that of pods
    that were replaced by one of the same name."""
    times = [
        reading.at_ms
        for pods in services.values()
        for readings in pods.values()
        for reading in readings
    ]
    at_ms = np.arange(min(times), max(times) + 1, 1000)

    def summed(pods: Mapping[str, list[Reading]]) -> list[Reading]:
        cpu_s, user_s, rss_gib = np.zeros((3, len(at_ms)))
        for readings in pods.values():
            read_ms = [reading.at_ms for reading in readings]
            cpu_s += np.interp(
                at_ms, read_ms, never_falling([reading.cpu_s for reading in readings])
            )
            user_s += np.interp(
                at_ms, read_ms, never_falling([reading.cpu_user_s for reading in readings])
            )
            # A pod has no memory before it is created and after it is gone.
            rss = np.interp(at_ms, read_ms, [reading.rss_gib for reading in readings])
            rss_gib += np.where(
                (at_ms >= read_ms[0] - REACH_MS) & (at_ms <= read_ms[-1] + REACH_MS), rss, 0.0
            )
        rows = zip(at_ms.tolist(), cpu_s.tolist(), user_s.tolist(), rss_gib.tolist(), strict=True)
        return [Reading(*row) for row in rows]

    return {service: summed(pods) for service, pods in services.items()}


def never_falling(counts: Sequence[float]) -> list[float]:
    """Return cumulative counts that keep rising when a new process starts to count from zero: add
    what earlier processes had counted."""
    totals, before = [0.0], 0.0
    for last, count in itertools.pairwise([0.0, *counts]):
        before += last if count < last else 0.0
        totals.append(before + count)
    return totals[1:]


def noise(folder: Path) -> list[NoiseRow]:
    """Return the rows of `noise.csv`; an empty list if the run has no such file.

    On Kubernetes, the rows of `noise_nodes.csv` follow, grouped by machine. If several nodes run on
    one machine, it has one series of rows, with the CPU time of services and harness summed over
    these nodes. Nodes on the harness's machine are added to the rows of `noise.csv` in the same
    way."""
    here = rows_of(shared_file(folder, "noise.csv"), noise_row)
    machines: dict[str, dict[str, list[NoiseRow]]] = {"": {"": here}}

    def take(row: Mapping[str, str]) -> None:
        nodes = machines.setdefault(row["machine"], {})
        nodes.setdefault(row["node"], []).append(noise_row(row))

    rows_of(shared_file(folder, "noise_nodes.csv"), take)
    return [
        replace(row, machine=machine)
        for machine, nodes in machines.items()
        for row in _joined(*nodes.values())
    ]


def _joined(rows: Sequence[NoiseRow], *others: Sequence[NoiseRow]) -> Sequence[NoiseRow]:
    """Return `rows` with the CPU time of services and agents increased by that in `others`, the
    rows of further nodes on the same machine."""
    at_ms = [row.at_ms for row in rows]
    for other in others:
        other_ms = [row.at_ms for row in other]
        services_s = np.interp(at_ms, other_ms, [row.services_s or 0.0 for row in other])
        harness_s = np.interp(at_ms, other_ms, [row.harness_s for row in other])
        rows = [
            replace(
                row,
                services_s=None if row.services_s is None else row.services_s + float(more_s),
                harness_s=row.harness_s + float(agent_s),
            )
            for row, more_s, agent_s in zip(rows, services_s, harness_s, strict=True)
        ]
    return rows


def noise_row(row: Mapping[str, str]) -> NoiseRow:
    """Parse a row of `noise.csv`."""
    return NoiseRow(
        at_ms=int(row["at_ms"]),
        machine_s=finite_number(row["machine_s"]),
        busy_s=finite_number(row["busy_s"]),
        steal_s=finite_number(row["steal_s"]),
        programs_s=_optional(row["programs_s"]),
        services_s=_optional(row["services_s"]),
        harness_s=finite_number(row["harness_s"]),
        load_1_min=finite_number(row["load_1_min"]),
        mhz=_optional(row["mhz"]),
        waited_s={name: _optional(row[f"waited_for_{name}_s"]) for name in RESOURCES},
        core_mib_per_s=_optional(row[CORE_SPEED.key]),
        throttled_s=_optional(row.get("throttled_s") or ""),  # older folders do not have it
        memory_read_ns=_optional(row.get(MEMORY_READ.key) or ""),  # nor do nodes of Kubernetes
    )


def memory(folder: Path) -> dict[str, list[MemoryReading]]:
    """Return the rows of `memory.csv`, by service."""
    readings: dict[str, list[MemoryReading]] = {}

    def take(row: Mapping[str, str]) -> None:
        pss_gib, tmpfs_gib = (_optional(row[name]) for name in ("pss_gib", "tmpfs_gib"))
        reading = MemoryReading(int(row["at_ms"]), pss_gib, tmpfs_gib)
        readings.setdefault(row["service"], []).append(reading)

    rows_of(shared_file(folder, "memory.csv"), take)
    return readings


def throttling(folder: Path) -> dict[str, dict[str, list[CpuPeriods]]]:
    """Return the rows of `throttling.csv`, by service and pod; none outside of Kubernetes."""
    services: dict[str, dict[str, list[CpuPeriods]]] = {}

    def take(row: Mapping[str, str]) -> None:
        numbers = [int(row[name]) for name in ("at_ms", "periods", "throttled")]
        pods = services.setdefault(row["service"], {})
        pods.setdefault(row["pod"], []).append(CpuPeriods(*numbers))

    rows_of(shared_file(folder, "throttling.csv"), take)
    return services


def live_heaps(folder: Path, file: str = "live_heap.csv") -> dict[str, float | None]:
    """Return the live heap of each service in GiB, summed over its JVMs, from `file`. None if the
    live heap of any of the service's JVMs is unknown."""
    heaps: dict[str, float | None] = {}

    def take(row: Mapping[str, str]) -> None:
        before, gib = heaps.get(row["service"], 0.0), _optional(row[LIVE_HEAP.key])
        heaps[row["service"]] = None if before is None or gib is None else before + gib

    rows_of(shared_file(folder, file), take)
    return heaps


def actions(folder: Path) -> list[DoneAction]:
    """Return the rows of `actions.csv` of a live session; an empty list for other runs."""
    return rows_of(
        shared_file(folder, "actions.csv"),
        lambda row: DoneAction(int(row["at_ms"]), row["action"], _values(row["arguments"])),
    )


def _values(arguments: str) -> str:
    return " ".join(map(str, json.loads(arguments).values()))


def _optional(value: str) -> float | None:
    return finite_number(value) if value else None


def top_samples(folder: Path) -> dict[str, TopSamples]:
    """Return the samples of `top_samples.log`, by service; none if the file is missing."""
    by_name: dict[str, TopSamples] = {}
    file = shared_file(folder, "top_samples.log")
    text = text_of(file) if file.exists() else ""
    for name, cpu_pct, rss_gib in _TOP_LINE.findall(text):
        samples = by_name.setdefault(name, TopSamples([], []))
        try:
            samples.cpu_pct.append(finite_number(cpu_pct))
            samples.rss_gib.append(finite_number(rss_gib))
        except ValueError as error:
            raise UnreadableFile(file, error) from error
    return by_name


def required(path: Path) -> Path:
    """Return the path of a file that every run has.

    Raises:
        UnreadableFile: it is missing.
    """
    if not path.is_file():
        raise UnreadableFile(path, "it is missing")
    return path


def rows_of(path: Path, parse: Callable[[Mapping[str, str]], Parsed]) -> list[Parsed]:
    """Return the rows of a CSV file as parsed by `parse`, without an incomplete last line; an empty
    list if the file is missing.

    Raises:
        UnreadableFile: a row can't be parsed, or its time is far from those of the others.
    """
    text = text_of(path) if path.exists() else ""
    reader = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
    rows, times_ms = [], []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"it does not have {len(reader.fieldnames or ())} values")
            rows.append(parse(row))
            if AT_MS in row:
                times_ms.append(int(row[AT_MS]))
    except KeyError as error:
        raise UnreadableFile(path, f"there is no column {error}", reader.line_num) from error
    except (ValueError, TypeError, AttributeError, csv.Error) as error:
        raise UnreadableFile(path, error, reader.line_num) from error
    require_near(path, times_ms, range(2, len(times_ms) + 2))
    return rows


def require_near(path: Path, times_ms: Sequence[int] | Ints, lines: Sequence[int]) -> None:
    """Check that the times in some lines of a file are those of one run: with a time of 1970, its
    charts would have billions of points.

    Raises:
        UnreadableFile: a time is more than a week from the median.
    """
    if not len(times_ms):
        return
    far = np.abs(np.array(times_ms, dtype=np.float64) - np.median(times_ms)) > RUN_AT_MOST_MS
    if far.any():
        row = int(np.argmax(far))
        why = f"its time {times_ms[row]} ms is more than a week from those of other lines"
        raise UnreadableFile(path, why, lines[row])
