"""Noise of the machine: figures from `noise.csv`, and the noise gate (the limits beyond which a run
is void).

docs/noise.md describes the measurement and the thresholds.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from racetrack.analysis.raw import RESOURCES, NoiseRow, increase
from racetrack.metrics import MEMORY_READ
from racetrack.results.base import Scalar
from racetrack.results.figures import CoreSpeed, NoiseFigures
from racetrack.results.run import THROTTLED, VOID, CpuQuota, RunRecord

# Rows cover an interval if the first and last of them are at most this far from its ends.
REACH_MS = 2_000
# Error of the difference of two CPU times: their resolution is 0.01 s, and they are not read at the
# same instant.
READ_WITHIN_S = 0.05
# An unshared core stays within a few percent of its fastest second (docs/noise.md).
CORE_SPEED_WARNING_PCT = 90.0
# With enough memory, memory pressure is zero. It was 4 % on a machine that then ran out of memory.
MEMORY_WARNING_PCT = 1.0


@dataclass(frozen=True)
class Gate:
    """Limits for a valid run: the largest steal time, CPU use of other programs, increase of the
    time of a read from memory and time at a CPU quota. The defaults are those of `.env`."""

    steal_pct: float = 1.0
    foreign_cpu_pct: float = 5.0
    slowdown_pct: float = 30.0
    throttled_pct: float = 1.0

    @classmethod
    def of(cls, settings: Mapping[str, Scalar]) -> "Gate | None":
        """Return the gate from the settings of a run; None if it was off."""
        if not settings.get("noise_gate"):
            return None
        return cls(
            steal_pct=float(settings["steal_max_pct"] or 0),
            foreign_cpu_pct=float(settings["foreign_cpu_max_pct"] or 0),
            slowdown_pct=float(settings.get("slowdown_max_pct") or 0),
        )

    def exceeded_by(self, figures: NoiseFigures | None) -> str:
        """Describe the limits that were exceeded; return an empty text if there are none."""
        if not figures:
            return ""
        parts = []
        if self.throttles(figures):
            parts.append(
                f"a CPU quota stopped processes for {figures.throttled_pct:.1f} % of a core's time"
                f" (more than {self.throttled_pct:g} %)"
            )
        foreign, stolen = figures.foreign_cpu_pct, figures.steal_pct
        if foreign is not None and foreign > self.foreign_cpu_pct:
            parts.append(
                f"other programs used {foreign:.1f} % of a core"
                f" (more than {self.foreign_cpu_pct:g} %)"
            )
        if stolen > self.steal_pct:
            parts.append(
                f"the hypervisor took {stolen:.1f} % of the CPU time"
                f" (more than {self.steal_pct:g} %)"
            )
        return f"in the measured window {' and '.join(parts)}" if parts else ""

    def throttles(self, figures: NoiseFigures) -> bool:
        """Return whether CPU quotas stopped the run for longer than the limit."""
        return (figures.throttled_pct or 0.0) > self.throttled_pct


def over(rows: Sequence[NoiseRow], start_ms: float, end_ms: float) -> NoiseFigures | None:
    """Return the mean noise in an interval (epoch milliseconds); None if the rows do not cover it.
    With several machines, each figure is the worst among them."""
    machines = dict.fromkeys(row.machine for row in rows)
    noises = [
        _of_machine([row for row in rows if row.machine == machine], start_ms, end_ms)
        for machine in machines
    ]
    known = [noise for noise in noises if noise]
    return _worst(known) if known and len(known) == len(noises) else None


def _worst(machines: Sequence[NoiseFigures]) -> NoiseFigures:
    """Return each figure of the machine where it is worst: mostly the largest."""
    cores = [machine.core for machine in machines if machine.core]
    speeds = [machine.mhz for machine in machines if machine.mhz is not None]
    worst = {
        name: max(
            (value for machine in machines if (value := getattr(machine, name)) is not None),
            default=None,
        )
        for name in NoiseFigures.model_fields
        if name not in ("core", "mhz", "seconds")
    }
    slowest = min(cores, key=lambda core: core.pct, default=None)
    return machines[0].model_copy(
        update={**worst, "core": slowest, "mhz": min(speeds, default=None)}
    )


def _of_machine(rows: Sequence[NoiseRow], start_ms: float, end_ms: float) -> NoiseFigures | None:
    """Return the mean noise of one machine in an interval; None if the rows do not cover it."""
    if len(rows) < 2 or rows[0].at_ms > start_ms + REACH_MS or rows[-1].at_ms < end_ms - REACH_MS:
        return None
    ends_ms = np.clip([start_ms, end_ms], rows[0].at_ms, rows[-1].at_ms)
    seconds = float(ends_ms[1] - ends_ms[0]) / 1000
    if seconds <= 0:
        return None
    at_ms = [row.at_ms for row in rows]

    def grew(counts: Sequence[float | None]) -> float | None:
        known = [count for count in counts if count is not None]
        if len(known) < len(rows):
            return None
        return increase(at_ms, known, *ends_ms)

    def share(counts: Sequence[float | None]) -> float | None:
        return _pct(grew(counts), seconds)

    within = [row for row in rows if ends_ms[0] <= row.at_ms <= ends_ms[1]] or rows
    mhz = [row.mhz for row in within if row.mhz is not None]
    busy_s, machine_s = grew([row.busy_s for row in rows]), grew([row.machine_s for row in rows])
    busy_pct, programs_pct = _pct(busy_s, seconds) or 0.0, share(_programs_s(rows))
    ours_pct = share([_ours_s(row) for row in rows])
    used_pct = busy_pct if programs_pct is None else min(busy_pct, programs_pct)
    waited = {name: share([row.waited_s[name] for row in rows]) for name in RESOURCES}
    return NoiseFigures(
        seconds=round(seconds, 3),
        foreign_cpu_pct=None if ours_pct is None else round(used_pct - ours_pct, 2),
        steal_pct=_pct(grew([row.steal_s for row in rows]), machine_s) or 0.0,
        throttled_pct=share([row.throttled_s for row in rows]),
        busy_pct=busy_pct,
        machine_busy_pct=_pct(busy_s, machine_s) or 0.0,
        harness_cpu_pct=share([row.harness_s for row in rows]) or 0.0,
        kernel_cpu_pct=None if programs_pct is None else round(busy_pct - programs_pct, 2),
        load_1_min=round(statistics.fmean(row.load_1_min for row in within), 2),
        mhz=round(statistics.fmean(mhz), 1) if mhz else None,
        waited_for_cpu_pct=waited["cpu"],
        waited_for_memory_pct=waited["memory"],
        waited_for_io_pct=waited["io"],
        core=_core_speed(within, rows),
        memory_read_ns=_median_read_ns(within),
    )


def _core_speed(within: Sequence[NoiseRow], rows: Sequence[NoiseRow]) -> CoreSpeed | None:
    """Return the mean core speed in the interval and the highest of the run; None if unmeasured."""
    known = [row.core_mib_per_s for row in within if row.core_mib_per_s is not None]
    if not known:
        return None
    fastest = max(row.core_mib_per_s or 0.0 for row in rows)
    return CoreSpeed(mib_per_s=round(statistics.fmean(known), 1), fastest_mib_per_s=fastest)


def _median_read_ns(rows: Sequence[NoiseRow]) -> float | None:
    """Return the median time of a read from memory; None if unmeasured."""
    known = [row.memory_read_ns for row in rows if row.memory_read_ns is not None]
    return round(statistics.median(known), 2) if known else None


def _programs_s(rows: Sequence[NoiseRow]) -> list[float | None]:
    """Return the cumulative CPU seconds of all programs at each row; None where unknown.

    The kernel drops the CPU time of an ended process if no parent waits for it. Between rows where
    all programs together seem to have used less than services and harness, the busy time of the
    cores is used instead.
    """
    if any(row.programs_s is None for row in rows):
        return [None] * len(rows)
    total, totals = 0.0, list[float | None]([0.0])
    for before, row in itertools.pairwise(rows):
        used = (row.programs_s or 0.0) - (before.programs_s or 0.0)
        ours = (_ours_s(row) or 0.0) - (_ours_s(before) or 0.0)
        total += used if used >= ours - READ_WITHIN_S else row.busy_s - before.busy_s
        totals.append(total)
    return totals


def _ours_s(row: NoiseRow) -> float | None:
    """Return the CPU seconds of services and harness; None if the engine's processes are
    unknown."""
    return None if row.services_s is None else row.services_s + row.harness_s


def why_void(
    figures: NoiseFigures | None, gate: Gate | None, quotas: Sequence[CpuQuota] = ()
) -> str | None:
    """Return why an interval is void because of noise; None if it is valid, or if noise was not
    measured. `quotas` are those that the run had from its start."""
    if not (figures and gate and (reasons := gate.exceeded_by(figures))):
        return None
    if not (quotas and gate.throttles(figures)):
        return f"{VOID}{reasons}."
    return (
        f"{THROTTLED} of {describe_quotas(quotas)} is too small: {reasons}. Raise it, or run"
        " outside of this group. To accept such runs, set NOISE_GATE=false."
    )


def describe_quotas(quotas: Sequence[CpuQuota]) -> str:
    """Return CPU quotas and their control groups in words."""
    return " and ".join(f"{quota} (control group {quota.group})" for quota in quotas)


def shorter_ns(*reads_ns: float | None) -> float | None:
    """Return the shortest known time of a read from memory; None if none is known."""
    return min((ns for ns in reads_ns if ns), default=None)


def why_slow(read_ns: float | None, quiet_ns: float | None, gate: Gate | None) -> str | None:
    """Return why a window is void because the machine was slow: a read from memory took much longer
    than in the quietest window (`quiet_ns`). None if the window is valid, or one of the arguments
    is unknown."""
    if not (read_ns and quiet_ns and gate):
        return None
    times, at_most = read_ns / quiet_ns, 1 + gate.slowdown_pct / 100
    if times <= at_most:
        return None
    return (
        f"{VOID}the machine was slow: a read from memory took {MEMORY_READ.text(read_ns)},"
        f" {times:.2f} times (more than {at_most:g} times) as long as in the quietest window."
    )


def warnings(run: RunRecord) -> list[str]:
    """Return warnings about noise in a run that is not void."""
    figures = run.results.noise if run.results else None
    if not figures:
        return []
    texts = []
    if not Gate.of(run.settings) and (reasons := Gate().exceeded_by(figures)):
        quotas = describe_quotas(run.machine.cpu_quotas)
        which = f" The CPU quota is {quotas}." if quotas and Gate().throttles(figures) else ""
        texts.append(f"Noisy machine: {reasons}.{which} The gate was off (NOISE_GATE).")
    waited_pct = figures.waited_for_memory_pct
    if waited_pct is not None and waited_pct > MEMORY_WARNING_PCT:
        texts.append(
            f"The machine was short of memory: processes waited for it {waited_pct:.1f} % of the"
            " time. The broker keeps its data in memory, too (KAFKA_RETENTION_BYTES)."
        )
    if figures.core and figures.core.pct < CORE_SPEED_WARNING_PCT:
        texts.append(
            f"The cores ran at {figures.core.pct:.0f} % of the speed of the run's fastest second:"
            " another machine may share them (docs/noise.md). That raises costs and lowers rates."
        )
    return texts


def _pct(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(100 * part / whole, 2)
