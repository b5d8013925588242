"""What services spent on their work while an engine was overloaded: CPU time per million events.
Pure functions."""

from collections.abc import Mapping, Sequence

import numpy as np

from racetrack.analysis.raw import Reading


def cpu_s_per_million(
    usage: Mapping[str, Sequence[Reading]], start_ms: float, end_ms: float, counted: float
) -> dict[str, float]:
    """CPU seconds of each service between two times, by so many millions as were counted meanwhile;
    none if nothing was. Between two readings a service is taken to use the same all the time."""
    if counted <= 0:
        return {}
    return {
        service: round(_cpu_s(readings, start_ms, end_ms) / (counted / 1e6), 3)
        for service, readings in usage.items()
    }


def _cpu_s(readings: Sequence[Reading], start_ms: float, end_ms: float) -> float:
    at_ms, cpu_s = [one.at_ms for one in readings], [one.cpu_s for one in readings]
    first, last = np.interp([start_ms, end_ms], at_ms, cpu_s)
    return float(last - first)
