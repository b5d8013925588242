"""Computation of the figures of a window, by the keys of `racetrack/metrics.py`.

A figure that was not measured is absent; an infinite lag is infinite.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from racetrack.metrics import METRICS
from racetrack.results.base import StrictModel
from racetrack.results.figures import Answers, Results
from racetrack.results.run import RunRecord

# Services that every engine needs for its input, in addition to broker and generator.
SUPPORT = ("mysql", "registry", "debezium")
# A line of CPU use over rates needs this many different rates.
FEWEST_RATES = 2


def values(run: RunRecord) -> dict[str, float]:
    """Return the figures of the window that the verdict of a run judged."""
    results = run.results
    if not results:
        return {}
    lag, noise = results.verdict.measured, results.noise
    found: dict[str, float | None] = {}
    for part in (results, results.engine, lag, noise, results.load):
        found |= _of_same_names(part) if part else {}
    found |= _costs(results)
    found |= _views(results)
    found |= _reads(results.reads)
    found |= {
        "processed_pageviews_per_s": results.verdict.throughput.processed_per_s,
        "lag_slope_pct": lag.slope.pct if lag else None,
        "dt_p50_ms": results.dt_ms.p50,
        "core_mib_per_s": noise.core.mib_per_s if noise and noise.core else None,
        "top_cpu_mean_pct": _top_cpu_pct(run, results),
    }
    known = {key: value for key, value in found.items() if value is not None}
    return known | memory(known)


def memory(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figure of memory: PSS plus files on tmpfs, or resident memory if PSS is
    unknown."""
    if "pss_max_gib" in figures:
        return {"memory_gib": figures["pss_max_gib"] + figures.get("tmpfs_max_gib", 0.0)}
    return {"memory_gib": figures["rss_max_gib"]} if "rss_max_gib" in figures else {}


def base_cpu_pct(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the CPU use extrapolated to rate 0, in percent of a core, from a least-squares line
    through pairs of a rate and the CPU use at it. None with fewer than two rates, or if the result
    is not positive."""
    if len({round(rate, -1) for rate, _ in points}) < FEWEST_RATES:
        return None
    rates, used_pct = zip(*points, strict=True)
    _, intercept = np.polyfit(rates, used_pct, deg=1)
    return float(intercept) if intercept > 0 else None


def _of_same_names(part: StrictModel) -> dict[str, float | None]:
    """Return the figures that have the same name in a record and in the registry."""
    return {key: getattr(part, key) for key in type(part).model_fields if key in METRICS}


def _costs(results: Results) -> dict[str, float | None]:
    found: dict[str, float | None] = {
        f"{name}_cpu_mean_pct": results.processes[name].cpu_mean_pct
        for name in ("broker", "reader")
        if name in results.processes
    }
    if support := [of.cpu_mean_pct for name, of in results.processes.items() if name in SUPPORT]:
        found["support_cpu_mean_pct"] = sum(support)
    if engine := results.engine:
        pct_per_s = engine.cpu_s and engine.cpu_mean_pct / engine.cpu_s
        found["cpu_user_pct"] = pct_per_s * engine.cpu_user_s
        found["cpu_system_pct"] = pct_per_s * engine.cpu_system_s
        if engine.rss_max:
            found["rss_max_gib"] = engine.rss_max.gib
            found["rss_max_at_s"] = engine.rss_max.at_s
    return found


def _views(results: Results) -> dict[str, float | None]:
    if not results.views:
        return {}
    oldest = max(results.views, key=lambda view: view.lag_p99_ms)
    return {"view_lag_p50_ms": oldest.lag_p50_ms, "view_lag_p99_ms": oldest.lag_p99_ms}


def _top_cpu_pct(run: RunRecord, results: Results) -> float | None:
    means = [results.top[name].cpu_pct.mean for name in run.engine_services if name in results.top]
    known = [mean for mean in means if mean is not None]
    return sum(known) if known and len(known) == len(means) else None


def _reads(reads: Sequence[Answers]) -> dict[str, float | None]:
    """Return the response times of the slowest query, and the ages of the query with the oldest
    answers."""
    times, ages = [of.time for of in reads if of.time], [of.age for of in reads if of.age]
    found: dict[str, float | None] = {}
    for what, all_of in (("time", times), ("age", ages)):
        if all_of:
            worst = max(all_of, key=lambda of: of.p99_ms)
            found[f"read_{what}_p50_ms"] = worst.p50_ms
            found[f"read_{what}_p99_ms"] = worst.p99_ms
    return found
