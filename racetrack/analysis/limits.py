"""Limits that are not the engine's: a generator or broker that is too slow, or a lack of CPU time
on the cores of everything but the engine."""

from collections.abc import Collection
from pathlib import Path

from racetrack.analysis import raw
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.config import cores_of
from racetrack.results.figures import Throughput
from racetrack.results.run import RunRecord, Window
from racetrack.units import parse_cores

# Cores with less idle time are saturated. The kernel's accounting misses some of the time.
BUSY = 0.95
NO_IDLE_TIME = "had no idle time"
HARNESS = "harness"
# A service that uses less of the busy cores is not named.
LEAST_NAMED = 0.05


def too_slow(rates: Throughput) -> str:
    """Return what kept the engine idle: generator or broker, with the rate that it reached."""
    offered, handed_over = rates.offered_per_s, rates.handed_over_per_s
    if handed_over < (1 - RATE_TOLERANCE) * offered:
        return f"the generator handed over only {handed_over:,.0f} of {offered:,.0f}/s"
    if rates.published_per_s < (1 - RATE_TOLERANCE) * handed_over:
        return f"the broker stored only {rates.published_per_s:,.0f} of {handed_over:,.0f}/s"
    return f"generator and broker reached only {handed_over:,.0f}/s"


def busy_cores(folder: Path, run: RunRecord, window: Window) -> str:
    """Return which services saturated cores that the engine does not use, while the engine's own
    cores had idle time; "" if none did, if cores are shared, or if the engine's use is unknown."""
    if not run.settings.get("engine_cpus"):
        return ""
    used: dict[frozenset[int], dict[str, float]] = {}
    for service, cpu_s in _cpu_s(folder, window).items():
        if cores := frozenset(parse_cores(cores_of(run.settings, service))):
            used.setdefault(cores, {})[service] = cpu_s / (window.seconds * len(cores))
    own = frozenset(parse_cores(str(run.settings["engine_cpus"])))
    by_engine = used.get(own, {})
    if not {*run.engine_services} <= {*by_engine} or sum(by_engine.values()) >= BUSY:
        return ""
    busy = {
        cores: users
        for cores, users in used.items()
        if not cores & own and sum(users.values()) >= BUSY
    }
    return "; ".join(_text(cores, users) for cores, users in busy.items())


def _text(cores: Collection[int], used: dict[str, float]) -> str:
    most = sorted(used, key=lambda name: -used[name])
    named = (f"{name} {100 * used[name]:.0f} %" for name in most if used[name] >= LEAST_NAMED)
    which = f"core{'s' * (len(cores) > 1)} {', '.join(map(str, sorted(cores)))}"
    return f"{which} {NO_IDLE_TIME} ({', '.join(named)}), while the engine's cores had some"


def _cpu_s(folder: Path, window: Window) -> dict[str, float]:
    """Return the CPU seconds of each service and of the harness in a window."""
    counts = {
        service: ([reading.at_ms for reading in readings], [reading.cpu_s for reading in readings])
        for service, readings in raw.usage(folder).items()
    }
    if noise := [row for row in raw.noise(folder) if not row.machine]:
        counts[HARNESS] = [row.at_ms for row in noise], [row.harness_s for row in noise]
    return {
        name: raw.increase(at_ms, cpu_s, window.start_ms, window.end_ms)
        for name, (at_ms, cpu_s) in counts.items()
    }
