"""From the raw lines of a run folder to the figures of `run.json`'s `results`."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from racetrack.analysis import cdc, curves, littles_law, noise, raw, reads, recovery, views
from racetrack.analysis.sequential import decide
from racetrack.analysis.verdict import judge
from racetrack.analysis.window_writes import window_writes
from racetrack.results_record import (
    Cost,
    Freshness,
    HarnessCost,
    Results,
    Spread,
    Verdict,
    ViewLag,
)
from racetrack.run_record import CpuTime, Measured
from racetrack.runfolder import read_run

# What the verdict rests on is of the window that was judged, all else of the sampling window.
GROWTH = ("slope", "generator", "broker", "engine")
OF_THE_WINDOW = ("updates", "next_update_s", "throughput")


def results(folder: Path) -> Results:
    """The figures over the sampling window, as `run.json` holds them under `results`.

    Rates are per second, `dt_ms` in milliseconds, CPU in percent of one core and in seconds,
    memory in GiB. A figure that the run did not measure is None.

    Raises:
        ValueError: the run never came to its sampling window.
    """
    run = read_run(folder)
    asked, measured = run.asked, run.measured
    if not (asked and measured):
        raise ValueError(f"{folder} has no sampling window")
    window = measured.window
    start_ms, end_ms = window.start_ms, window.end_ms
    usage = raw.usage(folder)
    told = curves.read(folder)
    judged = judge(told, start_ms, end_ms, asked.pageviews_per_s)
    found_views = view_lags(folder, told.partitions, measured)
    # None counted: not known, and no cost of each.
    millions = (judged.throughput.processed_per_s or 0) * judged.window_s / 1e6
    arrivals, delays = raw.arrivals(folder), raw.delays(folder, run.engine)
    offered_per_s, achieved_per_s = rates(arrivals, start_ms, end_ms)
    held = memory_held(folder)
    found = Results(
        offered_pageviews_per_s=offered_per_s,
        achieved_pageviews_per_s=achieved_per_s,
        published_pageviews=sum(measured.end_offsets),
        processed_pageviews=measured.engine_total,
        verdict=views.worst(_decided(judged, told, asked.pageviews_per_s, measured), found_views),
        views=found_views,
        cdc=cdc.way(folder, window),
        reads=reads.answers(folder, len(told.partitions), window),
        window_writes=(
            window_writes(told, start_ms, end_ms, run.event_window_ms)
            if run.event_window_ms
            else None
        ),
        dt_ms=delay(delays, start_ms, end_ms),
        processes={
            name: process(
                samples.cpu_pct,
                memory(usage[name], start_ms, end_ms),
                measured.cpu_s[name],
                millions,
            ).model_copy(update=held.get(name, {}))
            for name, samples in raw.top_samples(folder).items()
        },
        harness=HarnessCost(
            cpu_s=round(measured.harness_cpu_s, 3),
            cpu_pct=round(100 * measured.harness_cpu_s / window.seconds, 2),
        ),
    )
    found.noise = noise.of_run(raw.noise(folder), window, found.verdict)
    if run.faults:
        found.faults = recovery.of_run(folder, run.faults)
        return found
    found.littles_law = littles_law.check(
        *(told, arrivals, delays, start_ms, end_ms), summary_after_ms=run.summary_after_ms
    )
    if found.littles_law and not found.littles_law.holds and found.verdict:
        found.verdict = _warned(found.verdict, littles_law.warning(found.littles_law))
    return found


def _warned(verdict: Verdict, warning: str) -> Verdict:
    return verdict.model_copy(update={"warnings": (*verdict.warnings, warning)})


def view_lags(folder: Path, partitions: Sequence[int], measured: Measured) -> tuple[ViewLag, ...]:
    """Of each marked view that was seen; none where there were no marks."""
    start_ms, end_ms = measured.window.start_ms, measured.window.end_ms
    found = []
    for view, told in views.told(folder, partitions):
        verdict = _decided(judge(told, start_ms, end_ms), told, None, measured)
        found.append(views.view_lag(view, told, verdict, start_ms, end_ms))
    return tuple(found)


def _decided(
    judged: Verdict, told: curves.Curves, asked_per_s: float | None, measured: Measured
) -> Verdict:
    """The verdict at the look that decided, if the run was watched on; how old the view was, and at
    what throughput, in the sampling window, as its costs are."""
    if measured.rate_set_ms is None or measured.watched_until_ms is None:
        return judged
    until_ms, window = measured.watched_until_ms, measured.window
    found = decide(*(told, measured.rate_set_ms, until_ms, asked_per_s), first_ms=window.end_ms)
    lag = judged.measured or found.measured
    if judged.measured and found.measured:
        grew = {name: getattr(found.measured, name) for name in GROWTH}
        lag = judged.measured.model_copy(update=grew)
    of_the_window = {name: getattr(judged, name) for name in OF_THE_WINDOW}
    return found.model_copy(update={**of_the_window, "measured": lag})


def rates(
    arrivals: Sequence[raw.Arrival], start_ms: int, end_ms: int
) -> tuple[float | None, float | None]:
    """Pageviews per second that were due, and that were handed over, in the window."""
    within = [arrival for arrival in arrivals if start_ms <= arrival.at_ms <= end_ms]
    if len(within) < 2:
        return None, None
    first, last = within[0], within[-1]
    seconds = (last.at_ms - first.at_ms) / 1000
    return (
        round((last.due - first.due) / seconds, 2),
        round((last.handed_over - first.handed_over) / seconds, 2),
    )


def delay(delays: Sequence[raw.Delay], start_ms: int, end_ms: int) -> Freshness:
    """Mean, median and maximum of the published freshness over the engine's updates in the
    window, in milliseconds; how many updates there were, and how many seconds after the window the
    next came."""
    within = [d.dt_ms for d in delays if start_ms <= d.timestamp_ms <= end_ms]
    later_ms = min((d.timestamp_ms for d in delays if d.timestamp_ms > end_ms), default=None)
    return Freshness(
        mean=round(statistics.fmean(within), 1) if within else None,
        p50=round(statistics.median(within), 1) if within else None,
        max=max(within, default=None),
        updates=len(within),
        next_update_s=None if later_ms is None else (later_ms - end_ms) / 1000,
    )


def process(
    cpu_pct: Sequence[float],
    rss_gib: Sequence[float],
    cpu_s: CpuTime,
    millions: float,
) -> Cost:
    """What a service cost in the window, and per million pageviews that the engine counted in it.

    `cpu_s` is the kernel's account in user and in system mode; None per million if nothing was
    counted.
    """
    total_s = cpu_s.user + cpu_s.system
    return Cost(
        cpu_pct=spread(cpu_pct),
        rss_gib=spread(rss_gib),
        cpu_s=round(total_s, 3),
        cpu_user_s=round(cpu_s.user, 3),
        cpu_system_s=round(cpu_s.system, 3),
        cpu_s_per_million=round(total_s / millions, 3) if millions > 0 else None,
        rss_growth_gib_per_million=(
            round((rss_gib[-1] - rss_gib[0]) / millions, 4) if millions > 0 and rss_gib else None
        ),
    )


def memory(readings: Sequence[raw.Reading], start_ms: int, end_ms: int) -> list[float]:
    """Resident memory in GiB, at each reading in the window."""
    return [reading.rss_gib for reading in readings if start_ms <= reading.at_ms <= end_ms]


def memory_held(folder: Path) -> dict[str, dict[str, Any]]:
    """Of each service, the fields of `Cost` that say what it held, each page once."""
    live = raw.live_heaps(folder)
    found: dict[str, dict[str, Any]] = {name: {"live_heap_gib": gib} for name, gib in live.items()}
    for name, readings in raw.memory(folder).items():
        fields = found.setdefault(name, {})
        fields["pss_gib"] = _spread_if_known([reading.pss_gib for reading in readings])
        fields["tmpfs_gib"] = _spread_if_known([reading.tmpfs_gib for reading in readings])
    return found


def _spread_if_known(samples: Sequence[float | None]) -> Spread | None:
    known = [sample for sample in samples if sample is not None]
    return spread(known) if known and len(known) == len(samples) else None


def spread(samples: Sequence[float]) -> Spread:
    """Mean, sample standard deviation, standard error of the mean, maximum, and the samples.

    One sample has no deviation: `sd` and `sem` are None. Without any, all are.
    """
    if not samples:
        return Spread(mean=None, sd=None, sem=None, max=None, samples=())
    sd = statistics.stdev(samples) if len(samples) > 1 else None
    return Spread(
        mean=round(statistics.fmean(samples), 4),
        sd=None if sd is None else round(sd, 4),
        sem=None if sd is None else round(sd / len(samples) ** 0.5, 4),
        max=max(samples),
        samples=tuple(samples),
    )
