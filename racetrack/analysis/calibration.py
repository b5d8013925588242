"""Calibration: compares measurements of the calibration engine with the defects injected into
it."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis import curves, figures, raw
from racetrack.analysis.curves import recorded_until_ms, throughput
from racetrack.analysis.lag import lag_series
from racetrack.analysis.windows import SUPPORT
from racetrack.metrics import (
    CAPACITY_WITHIN,
    CPU_PER_MILLION,
    FOREIGN_WITHIN_PCT,
    LAG_P50,
    LAG_P99,
    LAG_WITHIN_MS,
    PROCESSING_LAG_P50,
)
from racetrack.results.defects import InjectedDefect
from racetrack.results.figures import Lag, Verdict, VerdictKind
from racetrack.results.folder import read_run
from racetrack.results.run import RunRecord, is_void

# Tolerances as fractions of the update cycle. The p99 has a wider one, because a disturbance of one
# cycle in twenty already changes it.
SAWTOOTH_WITHIN, SAWTOOTH_P99_WITHIN = 0.1, 0.25
# A partition counts as stalled at this lag, which is at least the update cycle of every engine.
STALLED_LAG_MS = 1_000.0
STALL_DETECTED_WITHIN_S = 2.0
FRESH_MS = 100.0
FETCHED_EVERY_MS = 20.0  # as in racetrack/engines/shared/upsert/tracer.py
WORK_WITHIN = 0.01
CPU_WITHIN = 0.1
_CAPACITY = re.compile(r"^RACETRACK capacity timestamp=(\d+), allowed=([\d.]+),", re.MULTILINE)
# Relative tolerance of the number of waiting events: reading the topic and the update cycle add
# milliseconds to the injected delay.
WAITING_WITHIN = 0.1
_STALLED = re.compile(r"^RACETRACK stalled timestamp=(\d+), partition=(-?\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """Row of the calibration table: the injected defect, the measured value, the tolerance, and
    whether the measured value is within it. `what` is the kind of figure that was checked."""

    programmed: str
    measured: str
    bound: str
    within: bool
    what: str = ""


def delay(folder: Path, defect: InjectedDefect) -> Finding:
    """Compare the median lag of a run with the delay injected into the engine."""
    bound = f"± {LAG_WITHIN_MS:.0f} ms"
    judged = _judged(read_run(folder))
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    p50_ms, p99_ms = judged.lag.lag_p50_ms, judged.lag.lag_p99_ms
    shown = f"median lag {p50_ms:,.0f} ms, p99 {p99_ms:,.0f} ms"
    within = abs(p50_ms - defect.delay_ms - defect.cycle_ms / 2) <= LAG_WITHIN_MS
    return Finding(str(defect), shown, bound, within=within)


def path(delayed: Path, without: Path, defect: InjectedDefect) -> Finding:
    """Compare the medians of lag and view lag of two runs through the same observation path with
    the delay injected into one of them. The other run shows what the path itself adds, and the CPU
    use of those who carry and receive the results."""
    runs = read_run(without), read_run(delayed)
    programmed = f"{runs[1].settings.get('cal_path')}: {defect}"
    bound = f"medians ± {LAG_WITHIN_MS:.0f} ms more than without"
    lags = [_lags_of(run) for run in runs]
    for lag in lags:
        if isinstance(lag, str):
            return Finding(programmed, lag, bound, within=False)
    own, late = (lag for lag in lags if not isinstance(lag, str))
    more_ms = [late[name][0] - own[name][0] for name in own]
    shown = [
        f"{name} {late[name][0] - p50:,.0f} ms later (p99 {late[name][1] - p99:,.0f} ms)"
        for name, (p50, p99) in own.items()
    ]
    alone = [f"{name} p50 {p50:,.0f} ms, p99 {p99:,.0f} ms" for name, (p50, p99) in own.items()]
    return Finding(
        programmed,
        f"{', '.join(shown)}; without: {', '.join(alone)}; CPU: {_carriers_cpu(runs[0])}",
        bound,
        within=all(abs(ms - defect.delay_ms) <= LAG_WITHIN_MS for ms in more_ms),
    )


def _lags_of(run: RunRecord) -> dict[str, tuple[float, float]] | str:
    """Return p50 and p99 of the lag of the count and of each view; a text if there are none."""
    judged = _judged(run)
    if isinstance(judged, str):
        return judged
    traced = run.results.views if run.results else ()
    if not traced:
        return "no view was traced"
    return {
        "count": (judged.lag.lag_p50_ms, judged.lag.lag_p99_ms),
        **{view.name: (view.lag_p50_ms, view.lag_p99_ms) for view in traced},
    }


def _carriers_cpu(run: RunRecord) -> str:
    """Return the mean CPU use of the harness, which receives the results, and of all services that
    carry them, in percent of a core."""
    if not run.results:
        return "n/a"
    others = {*run.engine_services, *SUPPORT, "loadgen"}
    used = {
        n: process.cpu_mean_pct for n, process in run.results.processes.items() if n not in others
    }
    if run.results.noise:
        used["harness"] = run.results.noise.harness_cpu_pct
    return ", ".join(f"{name} {pct:.1f} %" for name, pct in sorted(used.items()))


def sawtooth(folder: Path, defect: InjectedDefect) -> Finding:
    """Check the lag of an engine with a long update cycle: right after an update, it must be the
    injected delay plus the time (`spread_ms`) between the timestamps of the update's first and last
    partition. From there it must rise uniformly by one cycle."""
    lowest_ms = defect.delay_ms + defect.spread_ms
    expected = {
        LAG_P50: (lowest_ms + 0.5 * defect.cycle_ms, SAWTOOTH_WITHIN * defect.cycle_ms),
        LAG_P99: (lowest_ms + 0.99 * defect.cycle_ms, SAWTOOTH_P99_WITHIN * defect.cycle_ms),
        PROCESSING_LAG_P50: (lowest_ms, SAWTOOTH_WITHIN * defect.cycle_ms),
    }
    bound = ", ".join(
        f"{metric.title} {ms:,.0f} ± {off:.0f}" for metric, (ms, off) in expected.items()
    )
    judged = _judged(read_run(folder))
    if isinstance(judged, str):
        return Finding(str(defect), judged, f"{bound} ms", within=False)
    lag = judged.lag
    lags_ms = {metric: getattr(lag, metric.key) for metric in expected}
    return Finding(
        str(defect),
        ", ".join(f"{metric.title} {ms:,.0f}" for metric, ms in lags_ms.items()) + " ms",
        f"{bound} ms",
        within=all(abs(lags_ms[metric] - ms) <= off for metric, (ms, off) in expected.items()),
    )


def waiting(folder: Path, defect: InjectedDefect) -> Finding:
    """Check the number of waiting events, computed in two ways (from totals, and as rate × age),
    against rate × injected delay."""
    run = read_run(folder)
    judged = _judged(run)
    bound = f"both ± {WAITING_WITHIN:.0%}, and equal by Little's law"
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    expected = judged.requested_per_s * defect.delay_ms / 1000
    programmed = f"{defect} × {judged.requested_per_s:,}/s: {expected:,.0f} events wait"
    law = run.results.littles_law if run.results else None
    if not law:
        return Finding(programmed, "Little's law could not be checked", bound, within=False)
    sides = (law.waiting, law.rate_times_age)
    return Finding(
        programmed,
        f"{law.waiting:,.0f} by the totals, {law.rate_times_age:,.0f} by rate × age",
        bound,
        within=law.holds and all(abs(n - expected) <= WAITING_WITHIN * expected for n in sides),
    )


def view(folder: Path, defect: InjectedDefect) -> Finding:
    """Check the lag of a view that the engine updates later than its count. The measured lag may be
    too low by up to the interval between two tracer events, which limits the resolution, and
    contains the time between two fetches of the view's topic."""
    run = read_run(folder)
    bound = (
        f"view lag p50 and p99 ± {LAG_WITHIN_MS:.0f} ms, less one tracer interval, plus"
        f" {FETCHED_EVERY_MS:.0f} ms"
    )
    judged = _judged(run)
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    traced_views = run.results.views if run.results else ()
    if not traced_views:
        return Finding(str(defect), "no view was traced", bound, within=False)
    (traced,) = traced_views
    expected_ms = defect.delay_ms + defect.view_behind_ms + defect.cycle_ms / 2
    between_ms = 1000 / traced.tracer_events_per_s
    within = all(
        -between_ms - LAG_WITHIN_MS <= lag_ms - expected_ms <= LAG_WITHIN_MS + FETCHED_EVERY_MS
        for lag_ms in (traced.lag_p50_ms, traced.lag_p99_ms)
    )
    count_ms = judged.lag.lag_p50_ms
    return Finding(
        str(defect),
        f"view lag p50 {traced.lag_p50_ms:,.0f} ms, p99 {traced.lag_p99_ms:,.0f} ms with"
        f" {traced.tracer_events_per_s:g} tracer events/s; lag of the count {count_ms:,.0f} ms",
        bound,
        within=within,
    )


def answer(folder: Path, defect: InjectedDefect) -> Finding:
    """Check the response time and the age of query answers. The expected age is the view's age when
    the query arrives, plus the response time."""
    run = read_run(folder)
    bound = f"medians ± {LAG_WITHIN_MS:.0f} ms, the age less one tracer interval"
    reads = run.results.reads if run.results else ()
    if not (reads and run.results and run.results.views):
        return Finding(str(defect), "nothing was read", bound, within=False)
    ((read,), (traced,)) = reads, run.results.views
    if not (read.time and read.age):
        return Finding(str(defect), "nothing was answered", bound, within=False)
    old_ms = defect.delay_ms + defect.view_behind_ms + defect.cycle_ms / 2 + defect.answer_ms
    between_ms = 1000 / traced.tracer_events_per_s
    return Finding(
        str(defect),
        f"{read.answered} of {read.due} reads answered, in {read.time.p50_ms:,.0f} ms, with an age"
        f" of {read.age.p50_ms:,.0f} ms",
        bound,
        within=read.answered == read.due
        and abs(read.time.p50_ms - defect.answer_ms) <= LAG_WITHIN_MS
        and -between_ms - LAG_WITHIN_MS <= read.age.p50_ms - old_ms <= LAG_WITHIN_MS,
    )


def stall(folder: Path, defect: InjectedDefect) -> Finding:
    """Check how soon the lag shows that one partition has stalled, and that freshness does not show
    it.

    The judged window must lie within the stall.
    """
    run = read_run(folder)
    bound = (
        f"detected within {STALL_DETECTED_WITHIN_S:.0f} s, fell behind,"
        f" median dt_ms ≤ {FRESH_MS:.0f} ms"
    )
    judged = _judged(run)
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    stalled_ms = _stalled_at_ms(folder, run, defect.stalled_partition)
    detected_s = _detected_after_s(folder, defect.stalled_partition, stalled_ms)
    dt_ms = figures.delay(raw.delays(folder, run.engine), stalled_ms, judged.end_ms).p50
    kind, lag_ms = judged.verdict.kind, judged.lag.lag_max_ms
    detected = "not detected" if detected_s is None else f"detected after {detected_s:.2f} s"
    dt = "no dt_ms" if dt_ms is None else f"median dt_ms {dt_ms:,.0f} ms"
    return Finding(
        str(defect),
        f"{detected}, {kind}, {dt} while the lag grew to {lag_ms:,.0f} ms",
        bound,
        within=detected_s is not None
        and detected_s <= STALL_DETECTED_WITHIN_S
        and kind is VerdictKind.FELL_BEHIND
        and dt_ms is not None
        and dt_ms <= FRESH_MS,
    )


def capacity(below: Path, above: Path, defect: InjectedDefect) -> Finding:
    """Check that the verdict is "kept up" just below the injected capacity and "fell behind" just
    above it. `below` and `above` are the folders of the two runs."""
    runs = read_run(below), read_run(above)
    per_s, programmed = defect.capacity_per_s, str(defect)
    bound = f"{VerdictKind.KEPT_UP}, {VerdictKind.FELL_BEHIND}, counting ± {CAPACITY_WITHIN:.0%}"
    judged = [_judged(run) for run in runs]
    for result in judged:
        if isinstance(result, str):
            return Finding(programmed, result, bound, within=False)
    at_low, at_high = (result for result in judged if not isinstance(result, str))
    low, high = at_low.requested_per_s, at_high.requested_per_s
    counted_per_s = at_high.verdict.throughput.processed_per_s
    if counted_per_s is None:
        return Finding(programmed, at_high.verdict.reason, bound, within=False)
    kinds = [at_low.verdict.kind, at_high.verdict.kind]
    shown = f"{kinds[0]} at {low:,}/s, {kinds[1]} at {high:,}/s, counting {counted_per_s:,.0f}/s"
    tolerance = CAPACITY_WITHIN * per_s
    return Finding(
        programmed,
        shown,
        bound,
        within=kinds == [VerdictKind.KEPT_UP, VerdictKind.FELL_BEHIND]
        and per_s - tolerance <= low < high <= per_s + tolerance
        and abs(counted_per_s - per_s) <= tolerance,
    )


def foreign(folder: Path, burnt_pct: float) -> Finding:
    """Compare the measured CPU use of other programs with `burnt_pct`, the CPU use that the program
    started for this check reported itself, in percent of a core."""
    run = read_run(folder)
    bound = f"± {FOREIGN_WITHIN_PCT:g} % of a core, and the run is void"
    programmed = f"another program with {burnt_pct:.1f} % of a core"
    foreign_pct = run.results.noise.foreign_cpu_pct if run.results and run.results.noise else None
    if foreign_pct is None:
        return Finding(programmed, run.outcome, bound, within=False)
    void = is_void(run.outcome)
    return Finding(
        programmed,
        f"{foreign_pct:.1f} %, {'void' if void else run.outcome}",
        bound,
        within=void and abs(foreign_pct - burnt_pct) <= FOREIGN_WITHIN_PCT,
    )


def cpu(folder: Path, without: Path, defect: InjectedDefect) -> Finding:
    """Compare the CPU cost that was injected per event with the difference between two runs:
    `folder` with the defect, and `without` at the same rate. CPU-seconds per million events are
    microseconds per event."""
    costs = [
        run.results.engine.cpu_s_per_million if run.results and run.results.engine else None
        for run in (read_run(folder), read_run(without))
    ]
    programmed = f"{defect.cpu_us_per_event:g} {CPU_PER_MILLION.unit}"
    bound = f"± {CPU_WITHIN:.0%} more than without"
    with_it, base = costs
    if with_it is None or base is None:
        return Finding(programmed, read_run(folder).outcome, bound, within=False)
    return Finding(
        programmed,
        f"{with_it - base:.1f} more than without ({base:.1f})",
        bound,
        within=abs(with_it - base - defect.cpu_us_per_event)
        <= CPU_WITHIN * defect.cpu_us_per_event,
    )


def work(folder: Path, defect: InjectedDefect) -> Finding:
    """Compare the throughput at saturation with the engine's capacity, which varies. The engine
    logs the integral of its capacity over time."""
    run, programmed = read_run(folder), str(defect)
    bound = f"{VerdictKind.FELL_BEHIND}, counting ± {WORK_WITHIN:.0%} of its capacity in that time"
    judged = _judged(run)
    if isinstance(judged, str):
        return Finding(programmed, judged, bound, within=False)
    logged = [
        (float(at_ms), float(allowed))
        for log in _logs(folder, run)
        for at_ms, allowed in _CAPACITY.findall(log.read_text())
        if judged.start_ms <= int(at_ms) <= judged.end_ms
    ]
    if len(logged) < 2:
        raise ValueError(f"{folder}: the engine did not log its capacity in the window")
    (start_ms, before), (end_ms, after) = logged[0], logged[-1]
    seconds, kind = (end_ms - start_ms) / 1000, judged.verdict.kind
    allowed_per_s = (after - before) / seconds
    counted_per_s = throughput(curves.read(folder), start_ms, end_ms).processed_per_s or 0.0
    return Finding(
        programmed,
        f"{kind}, counting {counted_per_s:,.0f}/s in {seconds:.0f} s with a capacity of"
        f" {allowed_per_s:,.0f}/s (long-run mean {defect.mean_capacity_per_s:,.0f}/s)",
        bound,
        within=kind is VerdictKind.FELL_BEHIND
        and abs(counted_per_s - allowed_per_s) <= WORK_WITHIN * allowed_per_s,
    )


@dataclass(frozen=True)
class _Judged:
    """Rate, window, verdict and lag of a valid run."""

    requested_per_s: int
    start_ms: int
    end_ms: int
    verdict: Verdict
    lag: Lag


def _judged(run: RunRecord) -> _Judged | str:
    """Return the figures of a run, or a text on why it has none."""
    if run.outcome != "ok":
        return run.outcome
    if not (run.arguments and run.results):
        return "The run was not judged"
    verdict = run.results.verdict
    if not verdict.measured:
        return verdict.reason
    return _Judged(
        requested_per_s=run.arguments.events_per_s,
        start_ms=verdict.from_ms,
        end_ms=verdict.until_ms,
        verdict=verdict,
        lag=verdict.measured,
    )


def _logs(folder: Path, run: RunRecord) -> list[Path]:
    """Return the paths of the engine's logs."""
    return [folder / "stack" / f"{service}.log" for service in run.engine_services]


def _stalled_at_ms(folder: Path, run: RunRecord, partition: int) -> int:
    """Return when the partition stalled according to the engine's log, in epoch milliseconds.

    Raises:
        ValueError: the log reports no stall of the partition.
    """
    logs = _logs(folder, run)
    for log in logs:
        for stall_line in _STALLED.finditer(log.read_text()):
            if int(stall_line[2]) == partition:
                return int(stall_line[1])
    shown = ", ".join(f"stack/{log.name}" for log in logs)
    raise ValueError(f"{folder}: {shown} has no stall of partition {partition}")


def _detected_after_s(folder: Path, partition: int, stalled_ms: int) -> float | None:
    """Return the seconds from the stall to the first update after which the partition's lag exceeds
    STALLED_LAG_MS; None if there is no such update."""
    recorded = curves.read(folder)
    series = lag_series(recorded, stalled_ms, recorded_until_ms(recorded))
    late = np.flatnonzero((series.lag_ms > STALLED_LAG_MS) & (series.partition == partition))
    return float(series.at_ms[late[0]] - stalled_ms) / 1000 if len(late) else None
