"""What a report says of engines' limits, in words: the same on the terminal and on the page."""

import statistics
from collections.abc import Sequence

from racetrack.analysis import compare
from racetrack.limit_record import (
    AtRate,
    Capacity,
    LimitRecord,
    LimitRun,
    Overloaded,
    SustainableRate,
)
from racetrack.report.collect import Limit

NOT_KNOWN = "n/a"
# What a bound may be widened by without a word.
AS_ASKED_WITHIN = 0.05
# Of the CPU time of all services.
NEXT_TO_NOTHING = 0.01


def bounds_of(limits: Sequence[Limit]) -> list[float]:
    """The bounds that any of them was searched at, milliseconds."""
    return sorted({one.bound_ms for limit in limits for one in limit.record.sustainable})


def capacity_in_words(of: Capacity | None) -> str:
    """With its 95 % interval."""
    if not of:
        return NOT_KNOWN
    return f"{of.per_s:,.0f} ({of.low:,.0f} to {of.high:,.0f})"


def sustained_in_words(found: LimitRecord, bound_ms: float) -> str:
    """The highest rate that held, and the lowest above it that did not; and the bound, where it is
    not the one that was asked for."""
    asked = [one for one in found.sustainable if one.bound_ms == bound_ms]
    rates = _rates_in_words(asked[0]) if asked else NOT_KNOWN
    if rates == NOT_KNOWN or not _is_wider(found, bound_ms):
        return rates
    return f"{rates}, within {_bound(found, bound_ms)}"


def _rates_in_words(one: SustainableRate) -> str:
    held, failed = one.held_per_s, one.failed_per_s
    if held is None:
        return NOT_KNOWN if failed is None else f"below {failed:,}"
    return f"{held:,}" if failed is None else f"{held:,} (not {failed:,})"


def _is_wider(found: LimitRecord, bound_ms: float) -> bool:
    return found.held_within_ms(bound_ms) > bound_ms * (1 + AS_ASKED_WITHIN)


def _bound(found: LimitRecord, bound_ms: float) -> str:
    return f"{found.held_within_ms(bound_ms) / 1000:.1f} s"


def overloaded_in_words(seen: Overloaded) -> str:
    """What a time with always more to do says."""
    least, most = min(seen.batches_per_s), max(seen.batches_per_s)
    slowest = f", by its view {seen.view}" if seen.view else ""
    return (
        f"works at {_works(seen)} (batches {least:,.0f} to {most:,.0f}), its backlog"
        f" {seen.youngest_s:.0f} to {seen.oldest_s:.0f} s old{slowest}{_waited_in_words(seen)}"
        f"{_spent_in_words(seen)}{_paused_in_words(seen)}{_core_speed_in_words(seen)}"
    )


def _paused_in_words(seen: Overloaded) -> str:
    """A collection of the whole heap may fall into such a time, or not."""
    known = [
        (one.paused_share, (one.until_ms - one.from_ms) / 1000)
        for one in seen.moments
        if one.paused_share is not None
    ]
    if not known:
        return ""
    paused_s, whole_s = sum(share * lasts_s for share, lasts_s in known), sum(s for _, s in known)
    most, lasts_s = max(known)
    return (
        f"; stood still to collect garbage for {100 * paused_s / whole_s:.0f} % of the time"
        f" ({100 * most:.0f} % of the worst {lasts_s:.0f} s)"
    )


def _core_speed_in_words(seen: Overloaded | AtRate) -> str:
    """What shares the cores with this machine makes the same work take longer."""
    return f"; a core at {seen.core.pct:.0f} % of its fastest" if seen.core else ""


def _waited_in_words(seen: Overloaded) -> str:
    """Where the most of a backlog is, there is what limits the way."""
    shares = ", ".join(f"{100 * share:.0f} % for {what}" for what, share in seen.waited.items())
    return f", and waited {shares}" if shares else ""


def _spent_in_words(seen: Overloaded) -> str:
    """Which services had the CPU, the greatest first, but those with next to nothing. Where all of
    them leave cores unused, something else than the machine was the limit."""
    spent, whole = seen.cpu_s_per_million, sum(seen.cpu_s_per_million.values())
    most_first = sorted(spent, key=lambda service: -spent[service])
    shown = [
        f"{name} {spent[name]:.2f}" for name in most_first if spent[name] > whole * NEXT_TO_NOTHING
    ]
    cores = whole * _per_s(seen) / 1e6
    return f"; CPU-s per million: {', '.join(shown)}; all {cores:.1f} cores" if shown else ""


def _works(seen: Overloaded) -> str:
    """Some engines slow down with what they have had to do, so that is said, too."""
    return f"{_per_s(seen):,.0f}/s after {seen.counted_before / 1e6:,.1f} million"


def _per_s(seen: Overloaded) -> float:
    return statistics.fmean(seen.batches_per_s)


def at_rate_in_words(seen: AtRate) -> str:
    """What a time at a rate says."""
    bound_s = seen.bound_ms / 1000
    ended = f", broken off: above {bound_s:.1f} s too long" if seen.broken_off else ""
    began = "" if seen.drained else ", begun with a backlog that could not be worked off"
    return (
        f"{seen.per_s:,}/s for {seen.window.seconds:.0f} s: lag p50"
        f" {seen.lag_p50_ms:,.0f} ms, p99 {seen.lag_p99_ms:,.0f} ms{ended}{began}"
        f"{_core_speed_in_words(seen)}"
    )


def lines(found: LimitRecord) -> list[str]:
    """The result of a search, a line each."""
    made = [] if found.outcome == "ok" else [f"{found.engine}: {found.outcome}"]
    made.append(f"{found.engine}: capacity {capacity_in_words(found.capacity)} {found.of}/s")
    if works := [_worked(run) for run in found.runs if run.overloaded]:
        made.append(f"{found.engine}: it worked {', '.join(works)} {found.of}")
    return [*made, *(_sustained_line(found, one) for one in found.sustainable)]


def _worked(run: LimitRun) -> str:
    """What was not warm may work faster later."""
    works = _works(run.overloaded[-1])
    if run.warm_up_s is None or run.is_warm:
        return works
    return f"{works} (its cost not flat after {run.warm_up_s:.0f} s of warm-up)"


def _sustained_line(found: LimitRecord, one: SustainableRate) -> str:
    within = f"{one.bound_ms / 1000:g} s"
    if _is_wider(found, one.bound_ms):
        asked, within = within, _bound(found, one.bound_ms)
        within += f", two of its update cycles ({asked} was asked for),"
    return f"{found.engine}: lag p99 within {within} at {_rates_in_words(one)}"


def spread_in_words(values: Sequence[float]) -> str:
    """The least and the greatest, and how far each is from the middle between them at most."""
    within_pct = 100 * compare.apart(values)
    return f"{min(values):,.0f} to {max(values):,.0f}, within {within_pct:.1f} % of their middle"
