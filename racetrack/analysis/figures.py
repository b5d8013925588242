"""From the raw lines of a run folder to the figures of `run.json`'s `results`."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from racetrack.analysis import curves, raw, recovery
from racetrack.analysis.verdict import judge
from racetrack.runfolder import read_run


def results(folder: Path) -> dict[str, Any]:
    """The figures over the sampling window, as `run.json` holds them under `results`.

    Rates are per second, `dt_ms` in milliseconds, CPU in percent of one core and in seconds,
    memory in GiB. A figure that the run did not measure is None.
    """
    run = read_run(folder)
    measured = run["measured"]
    start_ms, end_ms = measured["window"]["start_ms"], measured["window"]["end_ms"]
    seconds = (end_ms - start_ms) / 1000
    harness_cpu_s = measured["harness_cpu_s"]
    usage = raw.usage(folder)
    judged = verdict(folder, start_ms, end_ms, run["asked"]["pageviews_per_s"])
    # None counted: not known, and no cost of each.
    millions = (judged["throughput"]["processed_per_s"] or 0) * judged["window_s"] / 1e6
    return {
        **rates(raw.arrivals(folder), start_ms, end_ms),
        "published_pageviews": sum(measured["end_offsets"]),
        "processed_pageviews": measured["engine_total"],
        "verdict": judged,
        "dt_ms": delay(raw.delays(folder, run["engine"]), start_ms, end_ms),
        "processes": {
            name: process(
                samples.cpu_pct,
                memory(usage[name], start_ms, end_ms),
                measured["cpu_s"][name],
                millions,
            )
            for name, samples in raw.top_samples(folder).items()
        },
        **({"faults": recovery.of_run(folder, run["faults"])} if "faults" in run else {}),
        "harness": {
            "cpu_s": round(harness_cpu_s, 3),
            "cpu_pct": round(100 * harness_cpu_s / seconds, 2),
        },
    }


def verdict(folder: Path, start_ms: int, end_ms: int, asked_per_s: float) -> dict[str, Any]:
    """Whether the engine kept up in the window, with its numbers: `analysis.verdict.Verdict`."""
    judged = asdict(judge(curves.read(folder), start_ms, end_ms, asked_per_s))
    finite: dict[str, Any] = _finite(judged)
    return finite


def _finite(value: Any) -> Any:
    """JSON has no infinity: a lag without end is None."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rates(arrivals: Sequence[raw.Arrival], start_ms: int, end_ms: int) -> dict[str, float | None]:
    """Pageviews per second that were due, and that were handed over, in the window."""
    within = [arrival for arrival in arrivals if start_ms <= arrival.at_ms <= end_ms]
    if len(within) < 2:
        return {"offered_pageviews_per_s": None, "achieved_pageviews_per_s": None}
    first, last = within[0], within[-1]
    seconds = (last.at_ms - first.at_ms) / 1000
    return {
        "offered_pageviews_per_s": round((last.due - first.due) / seconds, 2),
        "achieved_pageviews_per_s": round((last.handed_over - first.handed_over) / seconds, 2),
    }


def delay(delays: Sequence[raw.Delay], start_ms: int, end_ms: int) -> dict[str, float | int | None]:
    """Mean, median and maximum of the published freshness over the engine's updates in the
    window, in milliseconds; how many updates there were, and how many seconds after the window the
    next came."""
    within = [d.dt_ms for d in delays if start_ms <= d.timestamp_ms <= end_ms]
    later_ms = min((d.timestamp_ms for d in delays if d.timestamp_ms > end_ms), default=None)
    return {
        "mean": round(statistics.fmean(within), 1) if within else None,
        "p50": round(statistics.median(within), 1) if within else None,
        "max": max(within, default=None),
        "updates": len(within),
        "next_update_s": None if later_ms is None else (later_ms - end_ms) / 1000,
    }


def process(
    cpu_pct: Sequence[float],
    rss_gib: Sequence[float],
    cpu_s: Mapping[str, float],
    millions: float,
) -> dict[str, Any]:
    """What a service cost in the window, and per million pageviews that the engine counted in it.

    `cpu_s` is the kernel's account in user and in system mode; None per million if nothing was
    counted.
    """
    total_s = cpu_s["user"] + cpu_s["system"]
    return {
        "cpu_pct": spread(cpu_pct),
        "rss_gib": spread(rss_gib),
        "cpu_s": round(total_s, 3),
        "cpu_user_s": round(cpu_s["user"], 3),
        "cpu_system_s": round(cpu_s["system"], 3),
        "cpu_s_per_million": round(total_s / millions, 3) if millions > 0 else None,
        "rss_growth_gib_per_million": (
            round((rss_gib[-1] - rss_gib[0]) / millions, 4) if millions > 0 and rss_gib else None
        ),
    }


def memory(readings: Sequence[raw.Reading], start_ms: int, end_ms: int) -> list[float]:
    """Resident memory in GiB, at each reading in the window."""
    return [reading.rss_gib for reading in readings if start_ms <= reading.at_ms <= end_ms]


def spread(samples: Sequence[float]) -> dict[str, Any]:
    """Mean, sample standard deviation, standard error of the mean, maximum, and the samples.

    One sample has no deviation: `sd` and `sem` are None. Without any, all are.
    """
    if not samples:
        return {"mean": None, "sd": None, "sem": None, "max": None, "samples": []}
    sd = statistics.stdev(samples) if len(samples) > 1 else None
    return {
        "mean": round(statistics.fmean(samples), 4),
        "sd": None if sd is None else round(sd, 4),
        "sem": None if sd is None else round(sd / len(samples) ** 0.5, 4),
        "max": max(samples),
        "samples": list(samples),
    }
