"""Computation of the `results` in `run.json` from the raw files of a run folder.

Every figure refers to the window that the verdict judged, unless its description in
`racetrack/results/figures.py` names another window.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.analysis import curves, limits, noise, raw, recovery, views
from racetrack.analysis.curves import Curves, deleted_unread
from racetrack.analysis.lag import age, littles_law, littles_law_warning, window_writes
from racetrack.analysis.verdict import decide_together, judge
from racetrack.analysis.windows import SUPPORT
from racetrack.clock import AHEAD_MS
from racetrack.metrics import LIVE_HEAP, PSS_MAX, TMPFS_MAX
from racetrack.results.figures import (
    Cost,
    Freshness,
    MemoryMax,
    Results,
    Spread,
    StartLag,
    TopStatistics,
    Verdict,
    VerdictKind,
    ViewLag,
)
from racetrack.results.folder import read_run
from racetrack.results.run import Measured, RunRecord, Window

# With fewer events, there is no cost per million, because it would be mostly base load.
FEWEST_EVENTS = 1_000
AHEAD = (
    "A received_at was {:,.0f} ms ahead of the clock, so dt_ms is unknown: the topic has a message"
    " that the generator did not write, or clocks disagree"
)


def results(folder: Path) -> Results:
    """Return the figures of a run folder, which `run.json` contains under `results`.

    Rates are per second, `dt_ms` is in milliseconds, CPU use is in percent of one core or in
    seconds, and memory is in GiB. A figure that the run did not measure is None.

    Raises:
        ValueError: the run ended before its sampling window began.
    """
    return results_of(folder, read_run(folder))


def results_of(folder: Path, run: RunRecord) -> Results:
    """Return the figures of a run folder, as `results` does, but for the window in `run.measured`
    and the rate in `run.arguments`.

    Raises:
        ValueError: `run` has no window or no arguments.
    """
    arguments, measured = run.arguments, run.measured
    if not (arguments and measured):
        raise ValueError(f"{folder} has no sampling window")
    count = curves.read(folder)
    # The rate of a load profile changes, so the offered rate is used as the requested rate.
    requested_per_s = None if arguments.load else arguments.events_per_s
    verdict, found_views, start = judged(folder, count, requested_per_s, measured)
    window = window_of(verdict)
    start_ms, end_ms = window.start_ms, window.end_ms
    arrivals, delays = raw.arrivals(folder), raw.delays(folder, run.engine)
    offered_per_s, achieved_per_s = rates(arrivals, start_ms, end_ms)
    # Use 0 for an unknown count, so that no cost per million is computed.
    counted = (verdict.throughput.processed_per_s or 0) * verdict.window_s
    engine, processes = costs(folder, run, measured, window, counted)
    figures = Results(
        offered_events_per_s=offered_per_s,
        achieved_events_per_s=achieved_per_s,
        published_events=sum(measured.end_offsets),
        processed_events=measured.engine_total,
        deleted_unread_events=deleted_unread(count),
        verdict=verdict,
        start=start,
        views=found_views,
        cdc=views.cdc_path(folder, window),
        reads=views.read_answers(folder, len(count.partitions), window),
        window_writes=(
            window_writes(count, start_ms, end_ms, run.event_window_ms)
            if run.event_window_ms
            else None
        ),
        dt_ms=delay(delays, start_ms, end_ms),
        engine=engine,
        processes=processes,
        top=top(folder, measured),
        noise=noise.over(raw.noise(folder), start_ms, end_ms),
    )
    if busy := limits.busy_cores(folder, run, window):
        figures.verdict = _without_blame(figures.verdict, busy)
    if ahead_ms := most_ahead_ms(delays, start_ms, end_ms):
        figures.verdict = _warned(figures.verdict, AHEAD.format(ahead_ms))
    if not figures.deleted_unread_events:
        return _with_effects(figures, folder, run, count, arrivals, delays)
    figures.window_writes = None
    figures.reads = tuple(read.model_copy(update={"age": None}) for read in figures.reads)
    return figures


def _with_effects(
    figures: Results,
    folder: Path,
    run: RunRecord,
    count: Curves,
    arrivals: Sequence[raw.Arrival],
    delays: Sequence[raw.Delay],
) -> Results:
    """Add the effect of the load profile, the recovery from faults, and the check by Little's law,
    which all depend on the lag."""
    paused_ms = run.measured.paused_ms if run.measured else None
    if run.load:
        figures.load = recovery.load_effect(folder, run.load, paused_ms)
    if run.faults:
        figures.faults = recovery.recoveries(folder, run.faults, paused_ms)
        return figures
    figures.littles_law = littles_law(
        count,
        arrivals,
        delays,
        figures.verdict.from_ms,
        figures.verdict.until_ms,
        summary_after_ms=run.summary_after_ms,
    )
    if figures.littles_law and not figures.littles_law.holds:
        figures.verdict = _warned(figures.verdict, littles_law_warning(figures.littles_law))
    return figures


def window_of(verdict: Verdict) -> Window:
    """Return the window that a verdict judged."""
    return Window(start_ms=verdict.from_ms, end_ms=verdict.until_ms)


def _without_blame(verdict: Verdict, busy: str) -> Verdict:
    """Return the verdict of a window in which cores of everything but the engine were busy, and the
    engine's were not: a growing lag then may be that of the client that follows the views."""
    may_grow = verdict.kind in (VerdictKind.FELL_BEHIND, VerdictKind.UNDECIDED)
    if not (may_grow and verdict.measured):
        return _warned(verdict, f"The lag may include waiting for the harness: {busy}.")
    reason = f"The harness may be the bottleneck: {busy}. Otherwise: {verdict.reason}"
    return verdict.model_copy(update={"kind": VerdictKind.HARNESS_BOUND, "reason": reason})


def _warned(verdict: Verdict, warning: str) -> Verdict:
    return verdict.model_copy(update={"warnings": (*verdict.warnings, warning)})


def judged(
    folder: Path, count: Curves, requested_per_s: float | None, measured: Measured
) -> tuple[Verdict, tuple[ViewLag, ...], StartLag | None]:
    """Return the verdict on the run, the lag of each traced view in the same window, and the lag
    before that window. The verdict is that on the engine's count, or on a traced view if its
    verdict is worse."""
    # Tracer events are among the events that the broker deleted.
    traced = [] if deleted_unread(count) else views.traced_curves(folder, count.partitions)
    recorded = [count, *(view_curves for _, view_curves in traced)]
    verdict, *of_views = _verdicts(recorded, requested_per_s, measured)
    names = [view.name for view, _ in traced]
    start_ms, end_ms = verdict.from_ms, verdict.until_ms
    lags = tuple(
        views.view_lag(view, view_curves, view_verdict, start_ms, end_ms)
        for (view, view_curves), view_verdict in zip(traced, of_views, strict=True)
    )
    start = _start_lag(dict(zip(["", *names], recorded, strict=True)), measured, verdict)
    in_window = [*([verdict.measured] if verdict.measured else []), *lags]
    if start and start.lag_max_ms <= max((view.lag_max_ms for view in in_window), default=0.0):
        start = None
    by_name = dict(zip(names, of_views, strict=True))
    if name := views.deciding(verdict, by_name):
        own = by_name[name]
        verdict = verdict.model_copy(
            update={
                "kind": own.kind,
                "reason": f"{own.reason}; the slowest view decides: {name}",
                "shortest_window_s": own.shortest_window_s,
            }
        )
    return verdict, lags, start


def _verdicts(
    recorded: Sequence[Curves], requested_per_s: float | None, measured: Measured
) -> list[Verdict]:
    """Return the verdicts on the engine's count and on its views, of the first look (check at a
    fixed time) that decided. If the run was not watched beyond its sampling window, judge that."""
    window = measured.window
    if measured.watched_until_ms is None:
        rates = [requested_per_s, *[None] * (len(recorded) - 1)]
        return [
            judge(series, window.start_ms, window.end_ms, rate)
            for series, rate in zip(recorded, rates, strict=True)
        ]
    return decide_together(
        recorded,
        measured.rate_set_ms,
        measured.watched_until_ms,
        requested_per_s,
        first_ms=window.end_ms,
    )


def _start_lag(
    recorded: Mapping[str, Curves], measured: Measured, verdict: Verdict
) -> StartLag | None:
    """Return the largest lag from when the rate was set until the judged window begins, of the
    curves in which it is largest; None if there was no such time."""
    from_ms, until_ms = measured.rate_set_ms, verdict.from_ms
    ages = {name: age(series, from_ms, until_ms) for name, series in recorded.items()}
    at_least_ms = {name: max(lag.known.highest_ms, default=0.0) for name, lag in ages.items()}
    name = max(at_least_ms, key=lambda name: at_least_ms[name])
    if not at_least_ms[name]:
        return None
    lag_max_ms = float(max(ages[name].highest_ms))
    return StartLag(
        seconds=(until_ms - from_ms) / 1000,
        view=name or None,
        lag_max_ms=lag_max_ms,
        more_than_ms=None if math.isfinite(lag_max_ms) else round(at_least_ms[name]),
    )


def rates(
    arrivals: Sequence[raw.Arrival], start_ms: int, end_ms: int
) -> tuple[float | None, float | None]:
    """Return the events per second that were due and that were handed over in the window; None
    if there are too few rows."""
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
    """Return the number of updates in the window; the mean, median and maximum of their freshness
    (milliseconds), None if one is far below 0; and the seconds from the window's end to the next
    update."""
    every = [d.dt_ms for d in delays if start_ms <= d.timestamp_ms <= end_ms]
    within = [] if most_ahead_ms(delays, start_ms, end_ms) else every
    later_ms = min((d.timestamp_ms for d in delays if d.timestamp_ms > end_ms), default=None)
    return Freshness(
        mean=round(statistics.fmean(within), 1) if within else None,
        p50=round(statistics.median(within), 1) if within else None,
        max=max(within, default=None),
        updates=len(every),
        next_update_s=None if later_ms is None else (later_ms - end_ms) / 1000,
    )


def most_ahead_ms(delays: Sequence[raw.Delay], start_ms: int, end_ms: int) -> float:
    """Return the most by which a `received_at` was ahead of the clock at an update in the window;
    0 if it was no more than AHEAD_MS."""
    ahead = (-d.dt_ms for d in delays if start_ms <= d.timestamp_ms <= end_ms)
    most_ms = max(ahead, default=0.0)
    return most_ms if most_ms > AHEAD_MS else 0.0


def costs(
    folder: Path, run: RunRecord, measured: Measured, window: Window, counted: float
) -> tuple[Cost | None, dict[str, Cost]]:
    """Return the cost of the engine (None if its processes are unknown) and the cost of each
    service. `counted` is the number of events that the engine counted in the window."""
    usage, memory = raw.usage(folder), raw.memory(folder)
    heaps, limited = raw.live_heaps(folder), raw.throttling(folder)

    def cost(services: Sequence[str]) -> Cost:
        live = [gib for name in services if (gib := heaps.get(name)) is not None]
        sampled = [memory.get(name, []) for name in services]
        used = process(together([usage[name] for name in services]), window, measured, counted)
        return used.model_copy(
            update={
                PSS_MAX.key: _largest_sum(
                    [[sample.pss_gib for sample in samples] for samples in sampled]
                ),
                TMPFS_MAX.key: _largest_sum(
                    [[sample.tmpfs_gib for sample in samples] for samples in sampled]
                ),
                LIVE_HEAP.key: sum(live) if live else None,
                "throttled_pct": throttled_pct(
                    [periods for name in services for periods in limited.get(name, {}).values()],
                    window,
                ),
            }
        )

    own = [name for name in run.engine_services if name in usage]
    return cost(own) if own else None, {name: cost([name]) for name in usage}


def together(services: Sequence[Sequence[raw.Reading]]) -> list[raw.Reading]:
    """Add up the readings of several services that were taken at the same instants."""
    by_time: dict[int, list[raw.Reading]] = {}
    for reading in (reading for series in services for reading in series):
        by_time.setdefault(reading.at_ms, []).append(reading)
    return [
        raw.Reading(
            at_ms,
            sum(reading.cpu_s for reading in at_once),
            sum(reading.cpu_user_s for reading in at_once),
            sum(reading.rss_gib for reading in at_once),
        )
        for at_ms, at_once in sorted(by_time.items())
        if len(at_once) == len(services)
    ]


def process(
    readings: Sequence[raw.Reading], window: Window, measured: Measured, counted: float
) -> Cost:
    """Return the cost of a service in the window, from the kernel's accounting. CPU time is
    interpolated linearly between readings. The maximum of memory covers all of the run under
    load."""
    at_ms, ends_ms = [reading.at_ms for reading in readings], (window.start_ms, window.end_ms)
    cpu_s = raw.increase(at_ms, [reading.cpu_s for reading in readings], *ends_ms)
    user_s = raw.increase(at_ms, [reading.cpu_user_s for reading in readings], *ends_ms)
    millions = counted / 1e6 if counted >= FEWEST_EVENTS else None
    within = [r.rss_gib for r in readings if window.start_ms <= r.at_ms <= window.end_ms]
    return Cost(
        cpu_mean_pct=round(100 * cpu_s / window.seconds, 2),
        cpu_s=round(cpu_s, 3),
        cpu_user_s=round(user_s, 3),
        cpu_system_s=round(cpu_s - user_s, 3),
        cpu_s_per_million=round(cpu_s / millions, 3) if millions else None,
        rss_max=memory_max(readings, measured),
        rss_growth_gib_per_million=(
            round((within[-1] - within[0]) / millions, 4) if millions and within else None
        ),
    )


def throttled_pct(pods: Sequence[Sequence[raw.CpuPeriods]], window: Window) -> float | None:
    """Return the percentage of periods in which a pod used up its CPU limit, for the pod with the
    highest percentage. None if no pod has a limit."""

    def grew(pod: Sequence[raw.CpuPeriods], counts: Sequence[int]) -> float:
        at_ms = [period.at_ms for period in pod]
        return raw.increase(at_ms, raw.never_falling(counts), window.start_ms, window.end_ms)

    shares = []
    for pod in pods:
        if periods := grew(pod, [period.periods for period in pod]):
            shares.append(100 * grew(pod, [period.throttled for period in pod]) / periods)
    return round(max(shares), 2) if shares else None


def memory_max(readings: Sequence[raw.Reading], measured: Measured) -> MemoryMax | None:
    """Return the largest memory reading before the load was paused, and when it was taken."""
    until_ms = measured.paused_ms or measured.watched_until_ms or measured.window.end_ms
    under_load = [reading for reading in readings if reading.at_ms <= until_ms]
    if not under_load:
        return None
    most = max(under_load, key=lambda reading: reading.rss_gib)
    return MemoryMax(gib=most.rss_gib, at_s=round((most.at_ms - measured.rate_set_ms) / 1000, 1))


def top(folder: Path, measured: Measured) -> dict[str, TopStatistics]:
    """Return top's samples of each service, with the kernel's accounting for the same seconds."""
    usage, window = raw.usage(folder), measured.window
    by_name = {}
    for name, samples in raw.top_samples(folder).items():
        rss = [r.rss_gib for r in usage[name] if window.start_ms <= r.at_ms <= window.end_ms]
        kernel = measured.cpu_s[name]
        by_name[name] = TopStatistics(
            cpu_pct=spread(samples.cpu_pct),
            rss_gib=spread(rss),
            kernel_cpu_pct=round(100 * (kernel.user + kernel.system) / window.seconds, 2),
        )
    return by_name


def _largest_sum(services: Sequence[Sequence[float | None]]) -> float | None:
    """Return the largest sum over the services, which were read at the same times; None if a
    reading is unknown."""
    sums = []
    for at_one_time in zip(*services, strict=False):
        known = [gib for gib in at_one_time if gib is not None]
        if len(known) < len(at_one_time):
            return None
        sums.append(sum(known))
    return max(sums, default=None)


def spread(samples: Sequence[float]) -> Spread:
    """Return the mean, sample standard deviation, standard error of the mean, and maximum of
    samples.

    With one sample `sd` and `sem` are None; without samples all are None.
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


def top_summary(results: Results) -> list[str]:
    """Return top's samples in the format of the experiment of 2022: `name=…, tag=CPU_PCT, mean=…,
    sd=…, sem=…, samples=[…]`, and the same with `RES_GiB`. Services that all engines share
    (SUPPORT) are left out."""
    lines = []
    for name, numbers in results.top.items():
        if name not in SUPPORT:
            lines.append(_sample_line(name, "CPU_PCT", numbers.cpu_pct, "{:.1f}", with_max=False))
            lines.append(_sample_line(name, "RES_GiB", numbers.rss_gib, "{:.3f}", with_max=True))
    return lines


def _sample_line(name: str, tag: str, spread: Spread, form: str, *, with_max: bool) -> str:
    shown = {"mean": spread.mean, "sd": spread.sd, "sem": spread.sem}
    if with_max:
        shown["max"] = spread.max
    texts = {key: "n/a" if value is None else form.format(value) for key, value in shown.items()}
    values = ", ".join(f"{key}={text}" for key, text in texts.items())
    samples = ", ".join(form.format(sample) for sample in spread.samples)
    return f"name={name}, tag={tag}, {values}, samples=[{samples}]"
