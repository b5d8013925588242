"""Was a known defect measured as it was programmed? From run folders to findings."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack.analysis import curves, figures, raw
from racetrack.analysis.curves import recorded_until_ms, throughput
from racetrack.analysis.lag import lag_series
from racetrack.analysis.noise import is_void
from racetrack.results.defects import InjectedDefect
from racetrack.results.figures import Lag, Verdict, VerdictKind
from racetrack.results.folder import read_run
from racetrack.results.run import RunRecord

LAG_WITHIN_MS = 25.0
# Of the cycle. One late cycle of twenty, by a hiccup of the machine, moves the p99 by as much.
SAWTOOTH_WITHIN, SAWTOOTH_P99_WITHIN = 0.1, 0.25
# A partition has stalled for all to see once its lag is this; no engine's usual cycle is longer.
STALLED_LAG_MS = 1_000.0
STALL_SEEN_WITHIN_S = 2.0
FRESH_MS = 100.0
CAPACITY_WITHIN = 0.05
FOREIGN_WITHIN_PCT = 2.5
WORK_WITHIN = 0.01
_CAPACITY = re.compile(r"^RACETRACK capacity timestamp=(\d+), allowed=([\d.]+),", re.MULTILINE)
# Of what waits. Reading and a cycle of some milliseconds come on top of what is programmed.
WAITING_WITHIN = 0.1
_STALLED = re.compile(r"^RACETRACK stalled timestamp=(\d+), partition=(-?\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """A row of the table: what was programmed, what was measured, and whether that will do."""

    programmed: str
    measured: str
    bound: str
    within: bool


def delay(folder: Path, defect: InjectedDefect) -> Finding:
    """The median lag of a run against the delay of its engine."""
    bound = f"± {LAG_WITHIN_MS:.0f} ms"
    judged = _judged(read_run(folder))
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    p50_ms, p99_ms = judged.lag.lag_p50_ms, judged.lag.lag_p99_ms
    shown = f"median lag {p50_ms:,.0f} ms, p99 {p99_ms:,.0f} ms"
    within = abs(p50_ms - defect.delay_ms - defect.cycle_ms / 2) <= LAG_WITHIN_MS
    return Finding(str(defect), shown, bound, within=within)


def sawtooth(folder: Path, defect: InjectedDefect) -> Finding:
    """The lag of an engine that tells seldom: from its delay to a cycle more, each as long. An
    update is there once the last of its partitions is stamped."""
    lowest_ms = defect.delay_ms + defect.spread_ms
    expected = {
        "lag p50": (lowest_ms + 0.5 * defect.cycle_ms, SAWTOOTH_WITHIN * defect.cycle_ms),
        "p99": (lowest_ms + 0.99 * defect.cycle_ms, SAWTOOTH_P99_WITHIN * defect.cycle_ms),
        "processing lag p50": (lowest_ms, SAWTOOTH_WITHIN * defect.cycle_ms),
    }
    bound = ", ".join(f"{name} {ms:,.0f} ± {off:.0f}" for name, (ms, off) in expected.items())
    judged = _judged(read_run(folder))
    if isinstance(judged, str):
        return Finding(str(defect), judged, f"{bound} ms", within=False)
    lag = judged.lag
    measured = (lag.lag_p50_ms, lag.lag_p99_ms, lag.processing_lag_p50_ms)
    seen = dict(zip(expected, measured, strict=True))
    return Finding(
        str(defect),
        ", ".join(f"{name} {ms:,.0f}" for name, ms in seen.items()) + " ms",
        f"{bound} ms",
        within=all(abs(seen[name] - ms) <= off for name, (ms, off) in expected.items()),
    )


def waiting(folder: Path, defect: InjectedDefect) -> Finding:
    """How many pageviews waited in a run with a known delay: by the totals, and by rate × age."""
    run = read_run(folder)
    judged = _judged(run)
    bound = f"both ± {WAITING_WITHIN:.0%}, and one another as Little's law has it"
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    expected = judged.asked_per_s * defect.delay_ms / 1000
    programmed = f"{defect} × {judged.asked_per_s:,}/s: {expected:,.0f} pageviews wait"
    law = run.results.littles_law if run.results else None
    if not law:
        return Finding(programmed, "Little's law could not be held against it", bound, within=False)
    sides = (law.waiting, law.rate_times_age)
    return Finding(
        programmed,
        f"{law.waiting:,.0f} by the totals, {law.rate_times_age:,.0f} by rate × age",
        bound,
        within=law.holds and all(abs(n - expected) <= WAITING_WITHIN * expected for n in sides),
    )


def view(folder: Path, defect: InjectedDefect) -> Finding:
    """The lag of a view that trails its engine's count: a mark is in it so much later, and between
    two marks the older of them tells, so its age is lower by up to the time between them."""
    run = read_run(folder)
    bound = f"view lag p50 and p99 ± {LAG_WITHIN_MS:.0f} ms, and the time between two marks"
    judged = _judged(run)
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    found = run.results.views if run.results else ()
    if not found:
        return Finding(str(defect), "no view was seen", bound, within=False)
    (seen,) = found
    expected_ms = defect.delay_ms + defect.view_behind_ms + defect.cycle_ms / 2
    between_ms = 1000 / seen.tracer_events_per_s
    within = all(
        -between_ms - LAG_WITHIN_MS <= lag_ms - expected_ms <= LAG_WITHIN_MS
        for lag_ms in (seen.lag_p50_ms, seen.lag_p99_ms)
    )
    count_ms = judged.lag.lag_p50_ms
    return Finding(
        str(defect),
        f"view lag p50 {seen.lag_p50_ms:,.0f} ms, p99 {seen.lag_p99_ms:,.0f} ms by"
        f" {seen.tracer_events_per_s:g} marks/s, while that of the count is {count_ms:,.0f} ms",
        bound,
        within=within,
    )


def answer(folder: Path, defect: InjectedDefect) -> Finding:
    """How long an answer took, and how old it was: as its view when it was asked for, and as long
    as it took."""
    run = read_run(folder)
    bound = f"medians ± {LAG_WITHIN_MS:.0f} ms, of the age and the time between two marks"
    found = run.results.reads if run.results else ()
    if not (found and run.results and run.results.views):
        return Finding(str(defect), "nothing was read", bound, within=False)
    ((read,), (seen,)) = found, run.results.views
    if not (read.time and read.age):
        return Finding(str(defect), "nothing was answered", bound, within=False)
    old_ms = defect.delay_ms + defect.view_behind_ms + defect.cycle_ms / 2 + defect.answer_ms
    between_ms = 1000 / seen.tracer_events_per_s
    return Finding(
        str(defect),
        f"{read.answered} of {read.due} reads answered, in {read.time.p50_ms:,.0f} ms, when"
        f" {read.age.p50_ms:,.0f} ms old",
        bound,
        within=read.answered == read.due
        and abs(read.time.p50_ms - defect.answer_ms) <= LAG_WITHIN_MS
        and -between_ms - LAG_WITHIN_MS <= read.age.p50_ms - old_ms <= LAG_WITHIN_MS,
    )


def stall(folder: Path, defect: InjectedDefect) -> Finding:
    """How soon the lag showed a partition that stalled, which freshness does not show.

    The window has to lie within the stall, so that the verdict is on it alone.
    """
    run = read_run(folder)
    bound = (
        f"seen within {STALL_SEEN_WITHIN_S:.0f} s, fell behind, median dt_ms ≤ {FRESH_MS:.0f} ms"
    )
    judged = _judged(run)
    if isinstance(judged, str):
        return Finding(str(defect), judged, bound, within=False)
    stalled_ms = _stalled_at_ms(folder, run, defect.stalled_partition)
    seen_s = _seen_after_s(folder, defect.stalled_partition, stalled_ms)
    dt_ms = figures.delay(raw.delays(folder, run.engine), stalled_ms, judged.end_ms).p50
    kind, lag_ms = judged.verdict.kind, judged.lag.lag_max_ms
    seen = "never seen" if seen_s is None else f"seen after {seen_s:.2f} s"
    dt = "no dt_ms" if dt_ms is None else f"median dt_ms {dt_ms:,.0f} ms"
    return Finding(
        str(defect),
        f"{seen}, {kind}, {dt} while the lag grew to {lag_ms:,.0f} ms",
        bound,
        within=seen_s is not None
        and seen_s <= STALL_SEEN_WITHIN_S
        and kind is VerdictKind.FELL_BEHIND
        and dt_ms is not None
        and dt_ms <= FRESH_MS,
    )


def capacity(below: Path, above: Path, defect: InjectedDefect) -> Finding:
    """A capacity between two rates, one of which was kept up with while the other was not."""
    runs = read_run(below), read_run(above)
    per_s, what = defect.capacity_per_s, str(defect)
    bound = f"{VerdictKind.KEPT_UP}, {VerdictKind.FELL_BEHIND}, counting ± {CAPACITY_WITHIN:.0%}"
    judged = [_judged(run) for run in runs]
    for each in judged:
        if isinstance(each, str):
            return Finding(what, each, bound, within=False)
    at_low, at_high = (each for each in judged if not isinstance(each, str))
    low, high = at_low.asked_per_s, at_high.asked_per_s
    counted_per_s = at_high.verdict.throughput.processed_per_s
    if counted_per_s is None:
        return Finding(what, at_high.verdict.reason, bound, within=False)
    kinds = [at_low.verdict.kind, at_high.verdict.kind]
    shown = f"{kinds[0]} at {low:,}/s, {kinds[1]} at {high:,}/s, counting {counted_per_s:,.0f}/s"
    tolerance = CAPACITY_WITHIN * per_s
    return Finding(
        what,
        shown,
        bound,
        within=kinds == [VerdictKind.KEPT_UP, VerdictKind.FELL_BEHIND]
        and per_s - tolerance <= low < high <= per_s + tolerance
        and abs(counted_per_s - per_s) <= tolerance,
    )


def foreign(folder: Path, burnt_pct: float) -> Finding:
    """What another program used while a run was sampled, against that program's own account."""
    run = read_run(folder)
    bound = f"± {FOREIGN_WITHIN_PCT:g} % of a core, and the run is void"
    programmed = f"another program with {burnt_pct:.1f} % of a core"
    found = run.results.noise.foreign_cpu_pct if run.results and run.results.noise else None
    if found is None:
        return Finding(programmed, run.outcome, bound, within=False)
    void = is_void(run.outcome)
    return Finding(
        programmed,
        f"{found:.1f} %, {'void' if void else run.outcome}",
        bound,
        within=void and abs(found - burnt_pct) <= FOREIGN_WITHIN_PCT,
    )


def work(folder: Path, defect: InjectedDefect) -> Finding:
    """The rate at which an overloaded engine worked, against the integral of its capacity over the
    same time, which the engine notes."""
    run, what = read_run(folder), str(defect)
    bound = f"{VerdictKind.FELL_BEHIND}, counting ± {WORK_WITHIN:.0%} of what it was allowed"
    judged = _judged(run)
    if isinstance(judged, str):
        return Finding(what, judged, bound, within=False)
    noted = [
        (float(at_ms), float(allowed))
        for log in _logs(folder, run)
        for at_ms, allowed in _CAPACITY.findall(log.read_text())
        if judged.start_ms <= int(at_ms) <= judged.end_ms
    ]
    if len(noted) < 2:
        raise ValueError(f"{folder}: the engine did not note its capacity in the window")
    (start_ms, before), (end_ms, after) = noted[0], noted[-1]
    seconds, kind = (end_ms - start_ms) / 1000, judged.verdict.kind
    allowed_per_s = (after - before) / seconds
    counted_per_s = throughput(curves.read(folder), start_ms, end_ms).processed_per_s or 0.0
    return Finding(
        what,
        f"{kind}, counting {counted_per_s:,.0f}/s in {seconds:.0f} s, in which it was allowed"
        f" {allowed_per_s:,.0f}/s (in the long run {defect.mean_capacity_per_s:,.0f}/s)",
        bound,
        within=kind is VerdictKind.FELL_BEHIND
        and abs(counted_per_s - allowed_per_s) <= WORK_WITHIN * allowed_per_s,
    )


@dataclass(frozen=True)
class _Judged:
    """What a run that measured something says."""

    asked_per_s: int
    start_ms: int
    end_ms: int
    verdict: Verdict
    lag: Lag


def _judged(run: RunRecord) -> _Judged | str:
    """What a run says, or why it says nothing."""
    if run.outcome != "ok":
        return run.outcome
    if not (run.asked and run.results):
        return "The run was not judged"
    verdict = run.results.verdict
    if not verdict.measured:
        return verdict.reason
    return _Judged(
        asked_per_s=run.asked.pageviews_per_s,
        start_ms=verdict.from_ms,
        end_ms=verdict.until_ms,
        verdict=verdict,
        lag=verdict.measured,
    )


def _logs(folder: Path, run: RunRecord) -> list[Path]:
    """Those of the engine."""
    return [folder / "stack" / f"{service}.log" for service in run.engine_services]


def _stalled_at_ms(folder: Path, run: RunRecord, partition: int) -> int:
    """When the engine says that it stalled.

    Raises:
        ValueError: it does not say so, though its run was of use.
    """
    logs = _logs(folder, run)
    for log in logs:
        for told in _STALLED.finditer(log.read_text()):
            if int(told[2]) == partition:
                return int(told[1])
    shown = ", ".join(f"stack/{log.name}" for log in logs)
    raise ValueError(f"{folder}: {shown} does not say when partition {partition} stalled")


def _seen_after_s(folder: Path, partition: int, stalled_ms: int) -> float | None:
    """From the stall to the first update after which this partition lagged by STALLED_LAG_MS;
    None if it never did."""
    recorded = curves.read(folder)
    series = lag_series(recorded, stalled_ms, recorded_until_ms(recorded))
    seen = np.flatnonzero((series.lag_ms > STALLED_LAG_MS) & (series.partition == partition))
    return float(series.at_ms[seen[0]] - stalled_ms) / 1000 if len(seen) else None
