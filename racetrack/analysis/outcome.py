"""Checks of whether the figures of a run can be trusted: its outcome, and a cross-check by Little's
law."""

from collections.abc import Mapping

import numpy as np

from racetrack.analysis import noise, raw
from racetrack.analysis.curves import (
    STEP_MS,
    Curve,
    Curves,
    Floats,
    counted,
    recorded_until_ms,
    times_of,
    trusted,
)
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.results.figures import LittlesLaw, Results
from racetrack.results.run import Counts, RunArguments, RunRecord
from racetrack.results.verification import Verified, ViewStatus

VOID_EXIT_CODE = 5
# Relative tolerance. An engine that is seconds behind updates its views one after the other; the
# largest difference measured between two views was 0.6 %.
LITTLES_LAW_TOLERANCE = 0.01
# Times are rounded to milliseconds, and the rows of one update can be STEP_MS apart.
STAMPS_WITHIN_MS = STEP_MS + 1.0
HALF = 0.5


def run_outcome(run: RunRecord) -> str:
    """Return `ok`, or the first reason why the figures of a finished run can't be trusted."""
    if not (run.arguments and run.measured and run.results):
        return "unfinished"
    reasons = (
        _lost(run.measured),
        _refused(run.measured),
        # At rate 0 the engine has nothing to report.
        _silent(run.results) if run.arguments.pageviews_per_s else None,
        _overcounted(run.results),
        wrong_views(run.verified) if run.verified else None,
        # Noise comes before a missed rate, because it may have caused that. Repeating may help.
        noise.why_void(run.results.noise, noise.Gate.of(run.settings)),
        rate_missed(run.arguments, run.results),
    )
    return next((reason for reason in reasons if reason), "ok")


def joined(outcomes: Mapping[str, str]) -> str:
    """Return the outcome of a run, given that of each engine: `ok` if all are."""
    if len(outcomes) == 1:
        return next(iter(outcomes.values()))
    bad = [f"{name}: {text}" for name, text in outcomes.items() if text != "ok"]
    return "; ".join(bad) or "ok"


def exit_code(*outcomes: str) -> int:
    """Return the exit code of a command that made one run, given the outcome of each engine."""
    failed = [outcome for outcome in outcomes if outcome != "ok"]
    if not failed:
        return 0
    return VOID_EXIT_CODE if all(map(noise.is_void, failed)) else 1


def _lost(measured: Counts) -> str | None:
    handed, published = measured.handed_over, measured.end_offsets
    if handed == published:
        return None
    differences = [
        f"partition {number}: handed over {given:,}, published {there:,}"
        for number, (given, there) in enumerate(zip(handed, published, strict=True))
        if given != there
    ]
    return "Handed-over and published pageviews differ: " + "; ".join(differences)


def _refused(measured: Counts) -> str | None:
    refused = sum(measured.refused)
    return f"The generator could not publish {refused:,} pageviews" if refused else None


def rate_missed(arguments: RunArguments, results: Results) -> str | None:
    """Return a text on how far the generator missed the requested rate; None if it did not."""
    achieved = results.achieved_pageviews_per_s
    if achieved is None:
        return "The judged window is too short to measure the rate: take more samples"
    wanted: float = arguments.pageviews_per_s
    if arguments.load:  # its rate changes
        wanted = results.offered_pageviews_per_s or 0.0
    if achieved >= wanted * (1 - RATE_TOLERANCE):
        return None
    return f"The generator achieved {achieved:,.1f} pageviews/s of the {wanted:,.0f} requested"


def _silent(results: Results) -> str | None:
    """Return the error if the engine made no update, neither in the window nor later. An engine
    with a later update was measured: it is behind."""
    dt_ms, verdict = results.dt_ms, results.verdict
    reported = dt_ms.updates or dt_ms.next_update_s is not None
    judged = verdict.updates or verdict.next_update_s is not None
    if reported and judged:
        return None
    return (
        "The engine reported no update while it was measured, nor while it was given time to"
        " catch up: it has ended or hangs, or its count can no longer be read. Look at its log in"
        " stack/, and run it again"
    )


def _overcounted(results: Results) -> str | None:
    published, processed = results.published_pageviews, results.processed_pageviews
    if processed is None or processed <= published:
        return None
    return (
        f"The engine counted {processed - published:,} of {published:,} pageviews twice:"
        f" {processed:,}"
    )


def wrong_views(verified: Verified) -> str | None:
    """Return a text on the errors found in the engine's views or its input; None if there are
    none."""
    found = (_wrong(verified), _differing(verified), _not_compared(verified), _unfit(verified))
    if reasons := [reason for reason in found if reason]:
        return "; ".join(reasons)
    if len(verified.named(ViewStatus.ABSENT)) == len(verified.views):
        return "No view could be verified: this engine's demo has none of them"
    return None


def _wrong(verified: Verified) -> str | None:
    if wrong := verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE):
        late = "" if verified.drained_after_s is not None else ", and the engine had not drained"
        return f"Views are wrong: {', '.join(wrong)}{late}"
    return None


def _differing(verified: Verified) -> str | None:
    cdc = verified.cdc
    if not (cdc and cdc.differing):
        return None
    return (
        f"CDC delivered {cdc.differing_rows:,} rows that differ from MySQL, in"
        f" {', '.join(cdc.differing)}"
    )


def _not_compared(verified: Verified) -> str | None:
    tables = verified.cdc.tables if verified.cdc else {}
    of_cdc = [n for n, table in tables.items() if table.status is ViewStatus.NOT_COMPARED]
    names = [*(f"the topic of {name}" for name in of_cdc), *verified.named(ViewStatus.NOT_COMPARED)]
    return f"Not compared: {', '.join(names)}" if names else None


def _unfit(verified: Verified) -> str | None:
    of_topics = [f"{name} ({unfit.count:,})" for name, unfit in verified.unfit.items()]
    return f"Messages are unfit: {', '.join(of_topics)}" if of_topics else None


def littles_law(
    curves: Curves,
    arrivals: list[raw.Arrival],
    delays: list[raw.Delay],
    start_ms: float,
    end_ms: float,
    *,
    summary_after_ms: float = 0.0,
) -> LittlesLaw | None:
    """Compare the mean number of waiting pageviews with rate x age, from independent records.

    The number of waiting pageviews is the generator's total of due pageviews (`arrivals.csv`) minus
    the total in the engine's summary (freshness log). The age comes from the counts of each
    partition (`curves.csv`). If the pageviews of a partition are due at even intervals at a rate r
    and the oldest waiting pageview has age A, between r*A and r*A + 1 pageviews wait: on average
    r*A + 1/2.

    `summary_after_ms` is how much later the engine may report its total than its progress. Return
    None if nothing was recorded, or if the oldest pageview was due before the recording began.
    """
    curves = trusted(curves)
    end_ms = min(end_ms, recorded_until_ms(curves), arrivals[-1].at_ms if arrivals else -np.inf)
    if end_ms <= start_ms or not delays:
        return None
    pairs = list(zip(curves.due, curves.processed, strict=True))
    by_age = sum(_rate_times_age(due, counts, start_ms, end_ms) + HALF for due, counts in pairs)
    if not np.isfinite(by_age):
        return None
    waiting = _waiting(arrivals, delays, start_ms, end_ms)
    grown = sum(
        float(np.diff(np.interp([start_ms, end_ms], d.at_ms, d.count))[0]) for d, _ in pairs
    )
    rate_per_ms = grown / (end_ms - start_ms)
    apart_ms = STAMPS_WITHIN_MS + summary_after_ms
    tolerance = (
        HALF * len(pairs) + rate_per_ms * apart_ms + LITTLES_LAW_TOLERANCE * max(waiting, by_age)
    )
    return LittlesLaw(
        waiting=round(waiting, 2),
        rate_times_age=round(by_age, 2),
        ratio=round(by_age / waiting, 4) if waiting > 0 else None,
        tolerance=round(tolerance, 2),
        holds=abs(waiting - by_age) <= tolerance,
    )


def littles_law_warning(found: LittlesLaw) -> str:
    """Return the warning for a run in which Little's law does not hold."""
    return (
        f"Little's law does not hold: {found.waiting:,.0f} pageviews waited on average, by the"
        f" totals of generator and engine, but rate × age of the partitions is"
        f" {found.rate_times_age:,.0f} (± {found.tolerance:,.0f}). Either the lag of this run or"
        " the engine's total is wrong: compare curves.csv with the freshness log"
    )


def _waiting(
    arrivals: list[raw.Arrival], delays: list[raw.Delay], start_ms: float, end_ms: float
) -> float:
    """Return the mean number of waiting pageviews in the window: due minus counted, from the
    totals."""
    due = Curve(
        np.array([row.at_ms for row in arrivals], dtype=np.float64),
        np.array([row.due for row in arrivals], dtype=np.float64),
    )
    updates = sorted(delays, key=lambda row: row.timestamp_ms)
    total = Curve(
        np.array([row.timestamp_ms for row in updates], dtype=np.float64),
        np.array([row.total for row in updates], dtype=np.float64),
    )
    from_ms, until_ms = _stretches(total.at_ms, start_ms, end_ms)
    counted_area = float(np.sum(counted(total, from_ms, "right") * (until_ms - from_ms)))
    return float(_area(due, np.array([start_ms]), np.array([end_ms]))[0] - counted_area) / (
        end_ms - start_ms
    )


def _rate_times_age(due: Curve, processed: Curve, start_ms: float, end_ms: float) -> float:
    """Return rate x age of a partition, averaged over the window: the mean number of pageviews that
    became due within the age of the oldest waiting pageview."""
    from_ms, until_ms = _stretches(processed.at_ms, start_ms, end_ms)
    oldest_ms = times_of(due, counted(processed, from_ms, "right") + 1)
    if not np.isfinite(np.minimum(oldest_ms, end_ms)).all():
        return np.inf
    waits_from_ms = np.clip(oldest_ms, from_ms, until_ms)  # treats a negative age as 0
    due_by_then = np.interp(np.minimum(oldest_ms, until_ms), due.at_ms, due.count)
    area = _area(due, waits_from_ms, until_ms) - due_by_then * (until_ms - waits_from_ms)
    return float(np.sum(area)) / (end_ms - start_ms)


def _stretches(at_ms: Floats, start_ms: float, end_ms: float) -> tuple[Floats, Floats]:
    """Cut the window at these times; return the starts and the ends of the pieces."""
    inside = np.unique(at_ms[(at_ms > start_ms) & (at_ms < end_ms)])
    return np.concatenate([[start_ms], inside]), np.concatenate([inside, [end_ms]])


def _area(curve: Curve, from_ms: Floats, until_ms: Floats) -> Floats:
    """Return the area under a curve from each `from_ms` to its `until_ms`. The curve is linear
    between its rows."""
    edges = np.unique(np.concatenate([curve.at_ms, from_ms, until_ms]))
    level = np.interp(edges, curve.at_ms, curve.count)
    pieces = (level[1:] + level[:-1]) / 2 * np.diff(edges)
    up_to = np.concatenate([[0.0], np.cumsum(pieces)])
    below = up_to[np.searchsorted(edges, until_ms)] - up_to[np.searchsorted(edges, from_ms)]
    return np.asarray(below, dtype=np.float64)
