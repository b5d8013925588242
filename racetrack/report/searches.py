"""Texts on the results of capacity searches, and on the agreement of repeated searches."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from racetrack.analysis.intervals import half_range, summary
from racetrack.report.collect import Limit, place_of, settings_of
from racetrack.report.figures import format_significant
from racetrack.results.base import Scalar
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
GENERATOR = "loadgen"  # name of the generator's service
Settings = frozenset[tuple[str, Scalar]]


def bounds_of(limits: Sequence[Limit]) -> list[float]:
    """Return the requested bounds of all searches, in milliseconds."""
    return sorted({one.bound_ms for limit in limits for one in limit.record.sustainable})


def describe_capacity(of: Capacity | None) -> str:
    """Format a capacity with its 95 % interval."""
    if not of:
        return NOT_KNOWN
    return f"{of.per_s:,.0f} ({of.low:,.0f} to {of.high:,.0f})"


def describe_ranking(limits: Sequence[Limit]) -> str:
    """Return a sentence that ranks engines by the mean capacity of their searches; empty if no
    capacity is known."""
    found: dict[str, list[float]] = {}
    for each in limits:
        if each.record.capacity:
            found.setdefault(each.record.engine, []).append(each.record.capacity.per_s)
    ranked = sorted(found, key=lambda engine: -statistics.fmean(found[engine]))
    if not ranked:
        return ""
    capacities = [f"{engine} {_mean_of(found[engine])}" for engine in ranked]
    if len(ranked) == 1:
        return f"Capacity of {capacities[0]} pageviews/s."
    first, second = (summary(found[engine]) for engine in ranked[:2])
    is_clear = second.is_below(first)
    answer = f"{ranked[0]} goes furthest" if is_clear else "None clearly goes furthest"
    return f"{answer}. Capacity, pageviews/s: {'; '.join(capacities)}."


def _mean_of(capacities: Sequence[float]) -> str:
    mean = summary(capacities)
    half = "" if mean.half is None else f" ± {mean.half:,.0f}"
    count = "one search" if mean.n == 1 else f"{mean.n} searches"
    return f"{mean.mean:,.0f}{half} ({count})"


def describe_sustained(found: LimitRecord, bound_ms: float) -> str:
    """Format the highest rate at which the lag stayed within a bound, and the lowest rate above
    that at which it did not. Add the effective bound if it is larger than the requested bound."""
    matching = [one for one in found.sustainable if one.bound_ms == bound_ms]
    rates = _describe_rates(matching[0]) if matching else NOT_KNOWN
    if rates == NOT_KNOWN or not _is_wider(found, bound_ms):
        return rates
    return f"{rates}, within {_format_bound(found, bound_ms)}"


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
        f"{name} {format_significant(spent[name])}"
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
    made.append(f"{found.engine}: capacity {describe_capacity(found.capacity)} {found.of}/s")
    if works := [_describe_run(run) for run in found.runs if run.saturation]:
        made.append(f"{found.engine}: measured {', '.join(works)} {found.of}")
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


def describe_spread(values: Sequence[float]) -> str:
    """Format the minimum, the maximum, and half their difference in percent of the midpoint."""
    within_pct = 100 * half_range(values)
    return f"{min(values):,.0f} to {max(values):,.0f}, half-range {within_pct:.1f} % of midpoint"


def describe_agreement(found: Iterable[LimitRecord]) -> list[str]:
    """Return lines on the agreement of repeated searches, which have the same engine, machine and
    settings. Void searches and searches with a failed run are left out."""
    alike: dict[tuple[str, ...], dict[Settings, list[LimitRecord]]] = {}
    for one in found:
        if one.is_capacity_of_all_runs and not _is_void(one):
            by_settings = alike.setdefault((one.engine, *place_of(one)), {})
            by_settings.setdefault(frozenset(settings_of(one).items()), []).append(one)
    return [
        line
        for by_settings in alike.values()
        for settings, searches in by_settings.items()
        if len(searches) > 1
        for line in _describe_repeats(_label(searches[0].engine, settings, by_settings), searches)
    ]


def _is_void(one: LimitRecord) -> bool:
    return any(seen.void for seen in one.last_saturation())


def _label(engine: str, settings: Settings, others: Mapping[Settings, object]) -> str:
    """Return a label: the engine, and the settings by which these searches differ from its other
    searches."""
    own = sorted(settings - frozenset.intersection(*others))
    differs = ", ".join(f"{name.upper()}={value}" for name, value in own)
    return f"{engine} ({differs})" if differs else engine


def _describe_repeats(label: str, searches: Sequence[LimitRecord]) -> list[str]:
    works = [one.capacity.per_s for one in searches if one.capacity]
    mean = summary(works)
    half = mean.half or 0.0  # never None for two or more searches
    capacity = f"capacity {describe_spread(works)}; mean {mean.mean:,.0f} ± {half:,.0f} (95 %)"
    lines = [f"{label}: {len(searches)} searches: {capacity} {searches[0].of}/s"]
    if speed := _describe_machine_speed(searches):
        lines.append(f"{label}: speed of the machine: {speed}")
    for bound_ms in sorted({one.bound_ms for search in searches for one in search.sustainable}):
        sustained = [
            one.sustained_per_s
            for search in searches
            for one in search.sustainable
            if one.bound_ms == bound_ms and one.sustained_per_s
        ]
        within = f"lag p99 within {bound_ms / 1000:g} s"
        if len(sustained) == len(searches):
            lines.append(f"{label}: {within} at {describe_spread(sustained)}")
        elif sustained:
            lines.append(
                f"{label}: {within} at any rate in {len(sustained)} of {len(searches)} searches"
            )
    return lines


def _describe_machine_speed(searches: Sequence[LimitRecord]) -> str:
    """Describe how the machine's speed differed between searches: by core speed, and by the
    generator's CPU time per event, since the generator does the same work in all searches."""
    runs = [seen for one in searches for seen in one.last_saturation()]
    cores = [of.core for of in runs if of.core]
    spent_s = [of.cpu_s_per_million.get(GENERATOR, 0.0) for of in runs]
    parts = []
    if cores and len(cores) == len(runs):
        # Use the fastest second of all runs as the reference, since all seconds of a run may be
        # slow if other machines used the cores throughout.
        fastest = max(of.fastest_mib_per_s for of in cores)
        pct = [100 * of.mib_per_s / fastest for of in cores]
        parts.append(f"cores at {min(pct):.0f} to {max(pct):.0f} % of the fastest second of all")
    if spent_s and all(spent_s):
        parts.append(f"generator {min(spent_s):.2f} to {max(spent_s):.2f} CPU-s per million")
    return ", ".join(parts)
