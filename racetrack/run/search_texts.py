"""Texts on the progress and the results of capacity searches."""

import statistics

from racetrack.metrics import significant
from racetrack.results.search import (
    Capacity,
    LimitRecord,
    LimitRun,
    RateTrial,
    SaturationWindow,
    SustainableRate,
)

NOT_KNOWN = "n/a"
# The effective bound is shown if it exceeds the requested bound by more than this fraction.
WIDENED_BY = 0.05
# Services with a smaller share of the CPU time are left out.
LEAST_CPU_SHARE = 0.01


def describe_capacity(of: Capacity | None) -> str:
    """Format a capacity with its 95 % interval."""
    if not of:
        return NOT_KNOWN
    return f"{of.per_s:,.0f} ({of.low:,.0f} to {of.high:,.0f})"


def _describe_rates(one: SustainableRate) -> str:
    sustained, failed = one.sustained_per_s, one.failed_per_s
    if sustained is None:
        return NOT_KNOWN if failed is None else f"below {failed:,}"
    return f"{sustained:,}" if failed is None else f"{sustained:,} (not {failed:,})"


def _is_wider(found: LimitRecord, bound_ms: float) -> bool:
    return found.applied_bound_ms(bound_ms) > bound_ms * (1 + WIDENED_BY)


def _format_bound(found: LimitRecord, bound_ms: float) -> str:
    return f"{found.applied_bound_ms(bound_ms) / 1000:.1f} s"


def describe_saturation(seen: SaturationWindow) -> str:
    """Describe a saturation window in one line."""
    least, most = min(seen.batches_per_s), max(seen.batches_per_s)
    slowest = f", view {seen.view}" if seen.view else ""
    return (
        f"throughput {_describe_throughput(seen)} (batches {least:,.0f} to {most:,.0f}), backlog"
        f" {seen.backlog_min_s:.0f} to {seen.backlog_max_s:.0f} s{slowest}"
        f"{_describe_cpu(seen)}{_describe_core_speed(seen)}"
    )


def _describe_core_speed(seen: SaturationWindow | RateTrial) -> str:
    return f"; core speed {seen.core.pct:.0f} % of the fastest" if seen.core else ""


def _describe_cpu(seen: SaturationWindow) -> str:
    """List the services by CPU time. Readers can see from it whether all cores were in use, that
    is, whether the machine was the bottleneck."""
    spent, whole = seen.cpu_s_per_million, sum(seen.cpu_s_per_million.values())
    most_first = sorted(spent, key=lambda service: -spent[service])
    shown = [
        f"{name} {significant(spent[name])}"
        for name in most_first
        if spent[name] > whole * LEAST_CPU_SHARE
    ]
    cores = whole * _per_s(seen) / 1e6
    return f"; CPU-s per million: {', '.join(shown)}; all {cores:.1f} cores" if shown else ""


def _describe_throughput(seen: SaturationWindow) -> str:
    """Format a throughput, and the number of events counted before, since some engines become
    slower the more events they have counted."""
    return f"{_per_s(seen):,.0f}/s after {seen.counted_before / 1e6:,.1f} million"


def _per_s(seen: SaturationWindow) -> float:
    return statistics.fmean(seen.batches_per_s)


def describe_trial(seen: RateTrial) -> str:
    """Describe a rate trial in one line."""
    bound_s = seen.bound_ms / 1000
    ended = f", stopped early: above {bound_s:.1f} s for too long" if seen.ended_early else ""
    began = "" if seen.drained else ", started with a backlog that was not drained"
    return (
        f"{seen.per_s:,}/s for {seen.window.seconds:.0f} s: lag p50"
        f" {seen.lag_p50_ms:,.0f} ms, p99 {seen.lag_p99_ms:,.0f} ms{ended}{began}"
        f"{_describe_core_speed(seen)}"
    )


def describe_search(found: LimitRecord) -> list[str]:
    """Return the result of a search as lines, one per figure."""
    made = [] if found.outcome == "ok" else [f"{found.engine}: {found.outcome}"]
    made.append(f"{found.engine}: capacity {describe_capacity(found.capacity)} pageviews/s")
    if works := [_describe_run(run) for run in found.runs if run.saturation]:
        made.append(f"{found.engine}: measured {', '.join(works)} pageviews")
    return [*made, *(_describe_sustained_rate(found, one) for one in found.sustainable)]


def _describe_run(run: LimitRun) -> str:
    """Describe the throughput of a run, with a note if it was measured before warm-up had ended."""
    works = _describe_throughput(run.saturation[-1])
    if run.warm_up_s is None or run.is_warm:
        return works
    return f"{works} (CPU per event not flat after {run.warm_up_s:.0f} s of warm-up)"


def _describe_sustained_rate(found: LimitRecord, one: SustainableRate) -> str:
    within = f"{one.bound_ms / 1000:g} s"
    if _is_wider(found, one.bound_ms):
        requested, within = within, _format_bound(found, one.bound_ms)
        within += f", two update intervals (requested: {requested}),"
    return f"{found.engine}: lag p99 within {within} at {_describe_rates(one)}"
