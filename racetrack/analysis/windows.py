"""Computation of the figures of a window, by the keys of `racetrack/metrics.py`.

A figure that was not measured is absent; an infinite lag is infinite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from racetrack import metrics
from racetrack.metrics import METRICS
from racetrack.results.base import StrictModel
from racetrack.results.figures import Answers, Results
from racetrack.results.run import RunRecord
from racetrack.results.verification import Verified, ViewStatus
from racetrack.workloads.contract import TABLE_SERVICES

# Services that every engine needs for its input, in addition to broker and generator.
SUPPORT = TABLE_SERVICES
GENERATOR = "loadgen"
# A line of CPU use over rates needs this many different rates.
FEWEST_RATES = 2
# A line misses no measured CPU use by more than this part of the highest.
OFF_LINE = 0.1
# Percent of a core, divided by events per second, to CPU seconds per million events.
S_PER_MILLION = 1e4


def values(run: RunRecord) -> dict[str, float]:
    """Return the figures of the window that the verdict of a run judged."""
    results = run.results
    if not results:
        return {}
    lag, noise = results.verdict.measured, results.noise
    figures: dict[str, float | None] = {}
    for part in (results, results.engine, lag, noise, results.load):
        figures |= _of_same_names(part) if part else {}
    figures |= _costs(results)
    figures |= _views(results)
    if run.settings.get("tracer_events_per_second") and not run.traced_views:
        # The progress is that of views without tracer rows, so its lag is theirs.
        figures |= {
            metrics.VIEW_LAG_P50.key: figures.get(metrics.LAG_P50.key),
            metrics.VIEW_LAG_P99.key: figures.get(metrics.LAG_P99.key),
        }
    figures |= _reads(results.reads)
    figures |= {
        metrics.PROCESSED.key: results.verdict.throughput.processed_per_s,
        metrics.LAG_SLOPE.key: lag.slope.pct if lag else None,
        metrics.DT_P50.key: results.dt_ms.p50,
        metrics.CORE_SPEED.key: noise.core.mib_per_s if noise and noise.core else None,
        metrics.TOP_CPU.key: _top_cpu_pct(run, results),
    }
    known = {key: value for key, value in figures.items() if value is not None}
    return known | memory(known)


def memory(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figure of memory: PSS plus files on tmpfs, or resident memory if PSS is
    unknown."""
    pss_gib, tmpfs_gib, rss_gib = (
        figures.get(metric.key) for metric in (metrics.PSS_MAX, metrics.TMPFS_MAX, metrics.RSS_MAX)
    )
    gib = rss_gib if pss_gib is None else pss_gib + (tmpfs_gib or 0.0)
    return {} if gib is None else {metrics.MEMORY.key: gib}


@dataclass(frozen=True)
class CostLine:
    """CPU use over the rate: `base_pct` of a core at rate 0, and CPU seconds per further million
    events."""

    base_pct: float
    marginal_s_per_million: float

    def used_pct(self, per_s: float) -> float:
        """Return the CPU use at a rate, in percent of a core."""
        return self.base_pct + self.marginal_s_per_million * per_s / S_PER_MILLION

    def s_per_million(self, per_s: float) -> float:
        """Return the CPU seconds per million events at a rate."""
        return self.used_pct(per_s) * S_PER_MILLION / per_s


def cost_line(points: Sequence[tuple[float, float]]) -> CostLine | None:
    """Return the least-squares line through pairs of a rate and the CPU use at it, in percent of a
    core; None with fewer than two rates."""
    if len({round(rate, -1) for rate, _ in points}) < FEWEST_RATES:
        return None
    rates, used_pct = zip(*points, strict=True)
    slope, intercept = np.polyfit(rates, used_pct, deg=1)
    return CostLine(float(intercept), float(slope) * S_PER_MILLION)


def base_and_marginal(points: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return the two figures of the line through pairs of a rate and the CPU use at it; one that
    is not positive is left out. There is no such line if it begins clearly above a measured use, or
    misses one by more than OFF_LINE of the highest: then the cost of an event changes with the
    rate."""
    if not (line := cost_line(points)):
        return {}
    used_pct = [pct for _, pct in points]
    off_pct = max(abs(pct - line.used_pct(rate)) for rate, pct in points)
    begins_above = line.base_pct > min(used_pct) + metrics.BASE_CPU.within_abs
    if begins_above or off_pct > OFF_LINE * max(used_pct):
        return {}
    parts = {
        metrics.BASE_CPU.key: line.base_pct,
        metrics.MARGINAL_COST.key: line.marginal_s_per_million,
    }
    return {key: value for key, value in parts.items() if value > 0}


def broker_for_engine(figures: Mapping[str, float], alone: CostLine | None) -> dict[str, float]:
    """Return what the broker used on the engine's behalf in a window, given what it uses while a
    client only reads the input."""
    per_s, pct = (figures.get(metric.key) for metric in (metrics.PROCESSED, metrics.BROKER_CPU))
    used_s = None if pct is None or not per_s else pct * S_PER_MILLION / per_s
    more_s = beyond_input(per_s, used_s, alone)
    return {} if more_s is None else {metrics.BROKER_FOR_ENGINE.key: more_s}


def beyond_input(per_s: float | None, used_s: float | None, alone: CostLine | None) -> float | None:
    """Return the CPU seconds per million events, of the `used_s` at a rate, that a client which
    only reads the input does not cause; None if one of the arguments is unknown."""
    if not alone or not per_s or used_s is None:
        return None
    return used_s - alone.s_per_million(per_s)


def _of_same_names(part: StrictModel) -> dict[str, float | None]:
    """Return the figures that have the same name in a record and in the registry."""
    return {key: getattr(part, key) for key in type(part).model_fields if key in METRICS}


def _costs(results: Results) -> dict[str, float | None]:
    apart = {
        "broker": metrics.BROKER_CPU,
        GENERATOR: metrics.GENERATOR_CPU,
        "reader": metrics.READER_CPU,
        "client": metrics.CLIENT_CPU,
    }
    figures: dict[str, float | None] = {
        metric.key: results.processes[name].cpu_mean_pct
        for name, metric in apart.items()
        if name in results.processes
    }
    if support := [
        process.cpu_mean_pct for name, process in results.processes.items() if name in SUPPORT
    ]:
        figures[metrics.SUPPORT_CPU.key] = sum(support)
    if engine := results.engine:
        pct_per_s = engine.cpu_s and engine.cpu_mean_pct / engine.cpu_s
        figures[metrics.CPU_USER.key] = pct_per_s * engine.cpu_user_s
        figures[metrics.CPU_SYSTEM.key] = pct_per_s * engine.cpu_system_s
        if engine.rss_max:
            figures[metrics.RSS_MAX.key] = engine.rss_max.gib
            figures[metrics.RSS_MAX_AT.key] = engine.rss_max.at_s
    return figures


def _views(results: Results) -> dict[str, float | None]:
    if not results.views:
        return {}
    oldest = max(results.views, key=lambda view: view.lag_p99_ms)
    return {
        metrics.VIEW_LAG_P50.key: oldest.lag_p50_ms,
        metrics.VIEW_LAG_P99.key: oldest.lag_p99_ms,
        metrics.VIEW_LAG_ERROR.key: oldest.error_ms,
    }


def recovery(run: RunRecord) -> dict[str, float]:
    """Return the figures of the faults of a run: of the one after which they were worst."""
    if not (run.results and run.faults and run.faults.done):
        return {}
    done = run.faults.done
    up_s = [fault.until_ms and (fault.until_ms - fault.at_ms) / 1000 for fault in done]
    lags_s = [lag.after_s for fault in run.results.faults for lag in fault.lags.values()]
    figures: dict[str, float | None] = {
        metrics.COUNTED_BEFORE.key: done[0].counted,
        metrics.RATE_AT_FAULT.key: run.results.achieved_events_per_s,
        metrics.UP_AFTER.key: _latest(up_s),
        metrics.NORMAL_AFTER.key: _latest([*up_s, *lags_s]),
        **(_wrong(run.verified) if run.verified else {}),
    }
    return {key: value for key, value in figures.items() if value is not None}


def _latest(seconds: Sequence[float | None]) -> float | None:
    """Return the maximum; None if it did not happen in time for all."""
    known = [value_s for value_s in seconds if value_s is not None]
    return max(known) if len(known) == len(seconds) else None


def _wrong(verified: Verified) -> dict[str, float]:
    compared = [view for view in verified.views.values() if view.compared]
    counts = [view.miscounted for view in compared if view.miscounted]
    if not compared or any(miscount.still_counting for miscount in counts):
        return {}
    return {
        metrics.LOST.key: max((miscount.lost for miscount in counts), default=0),
        metrics.COUNTED_TWICE.key: max((miscount.twice for miscount in counts), default=0),
        metrics.WRONG_VIEWS.key: len(verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE)),
    }


def _top_cpu_pct(run: RunRecord, results: Results) -> float | None:
    means = [results.top[name].cpu_pct.mean for name in run.engine_services if name in results.top]
    known = [mean for mean in means if mean is not None]
    return sum(known) if known and len(known) == len(means) else None


def _reads(reads: Sequence[Answers]) -> dict[str, float | None]:
    """Return the response times of the slowest query, and the ages of the query with the oldest
    answers."""
    times, ages = (
        [read.time for read in reads if read.time],
        [read.age for read in reads if read.age],
    )
    figures: dict[str, float | None] = {}
    for quantiles, p50, p99 in (
        (times, metrics.READ_TIME_P50, metrics.READ_TIME_P99),
        (ages, metrics.READ_AGE_P50, metrics.READ_AGE_P99),
    ):
        if quantiles:
            worst = max(quantiles, key=lambda quantile: quantile.p99_ms)
            figures |= {p50.key: worst.p50_ms, p99.key: worst.p99_ms}
    return figures
