"""What a report says of engines' limits, in words: the same on the terminal and on the page."""

from collections.abc import Sequence

from racetrack.limit_record import Capacity, LimitRecord, OverloadedRun, SteadyRun, SustainableRate
from racetrack.report.collect import Limit

NOT_KNOWN = "n/a"


def bounds_of(limits: Sequence[Limit]) -> list[float]:
    """The bounds that any of them was searched at, milliseconds."""
    return sorted({one.bound_ms for limit in limits for one in limit.record.sustainable})


def capacity_in_words(of: Capacity | None) -> str:
    """With its 95 % interval."""
    if not of:
        return NOT_KNOWN
    return f"{of.pageviews_per_s:,.0f} ({of.low:,.0f} to {of.high:,.0f})"


def sustained_in_words(one: SustainableRate | None) -> str:
    """The highest rate that held, and the lowest above it that did not."""
    if not one:
        return NOT_KNOWN
    held, failed = one.held_pageviews_per_s, one.failed_pageviews_per_s
    if held is None:
        return NOT_KNOWN if failed is None else f"below {failed:,}"
    return f"{held:,}" if failed is None else f"{held:,} (not {failed:,})"


def overloaded_in_words(run: OverloadedRun) -> str:
    """What an overloaded run says."""
    mean = sum(run.batches_per_s) / len(run.batches_per_s)
    least, most = min(run.batches_per_s), max(run.batches_per_s)
    return (
        f"works at {mean:,.0f}/s (batches {least:,.0f} to {most:,.0f}), its backlog"
        f" {run.youngest_s:.0f} to {run.oldest_s:.0f} s old"
    )


def steady_in_words(run: SteadyRun) -> str:
    """What a run at a rate says."""
    ended = ", broken off: too late for any bound" if run.broken_off else ""
    return f"lag p50 {run.lag_p50_ms:,.0f} ms, p99 {run.lag_p99_ms:,.0f} ms{ended}"


def lines(found: LimitRecord) -> list[str]:
    """The result of a search, a line each."""
    made = [] if found.outcome == "ok" else [f"{found.engine}: {found.outcome}"]
    made.append(f"{found.engine}: capacity {capacity_in_words(found.capacity)} pageviews/s")
    made += [
        f"{found.engine}: lag p99 within {one.bound_ms / 1000:g} s at {sustained_in_words(one)}"
        for one in found.sustainable
    ]
    return made
