"""Did the engine keep up? The rule, as pure functions without I/O; its reasons in docs/verdict.md.

Sustainable throughput (Karimov et al., "Benchmarking Distributed Stream Data Processing Systems",
ICDE 2018) is the highest load without a continuously growing event-time latency. As in Theodolite
(Henning & Hasselbring, 2021) the growth is the slope of a line through the lag after warm-up, held
against a threshold. Here the line is robust (Theil-Sen), the slope has an interval (moving-block
bootstrap, Kuensch 1989), and an interval that contains the threshold is no verdict.
"""

import math
from typing import Any

import numpy as np

from racetrack.analysis import verdict_words
from racetrack.analysis.age import SHARES, age, quantiles_ms
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import (
    SILENT_GAPS,
    ClockStep,
    Floats,
    LagSeries,
    binned,
    lag_series,
    quantile_ms,
    recorded_until_ms,
    throughput,
    trusted,
)
from racetrack.analysis.outcome import RATE_TOLERANCE
from racetrack.analysis.silence import Silence, around
from racetrack.analysis.slope import (
    MIN_BINS,
    THRESHOLD_PCT,
    TRY_S,
    Precision,
    growth,
    shortest_window_s,
)
from racetrack.analysis.verdict_words import Shortfalls
from racetrack.results.figures import (
    Lag,
    LagAtMost,
    LagShare,
    Slope,
    Throughput,
    Verdict,
    VerdictKind,
)

# Rate: as the outcome of a run, plus what sampling every 100 ms can misplace at the ends.
SAMPLE_MS = 100.0
# A part that is later than an engine's usual cycle, and is most of the lag, hides the engine.
LATE_MS, LATE_SHARE = 1_000.0, 0.5
# Counted earlier than due by more than one sample can explain: the clocks disagree.
EARLY_MS = 100.0
PLAIN = Precision()
IDLE = "No verdict at rate 0: the run measures what the engine costs when idle"


def judge(
    curves: Curves,
    start_ms: float,
    end_ms: float,
    asked_per_s: float | None = None,
    threshold_pct: float = THRESHOLD_PCT,
    precision: Precision = PLAIN,
) -> Verdict:
    """The verdict over the window from `start_ms` to `end_ms` (epoch ms), warm-up excluded.

    `asked_per_s` is the rate asked for, one rate over the whole window; None: what was due.

    Raises:
        ValueError: the window does not end after it starts, or the threshold is not above 0.
    """
    if end_ms <= start_ms or threshold_pct <= 0:
        raise ValueError(f"no verdict on {start_ms}..{end_ms} ms, threshold {threshold_pct} %")
    curves = trusted(curves)
    step = curves.step
    series = lag_series(curves, start_ms, end_ms)
    rates = throughput(curves, start_ms, end_ms)
    asked = rates.offered_per_s if asked_per_s is None else asked_per_s
    window_s = _window_s(series)
    short = _shortfalls(rates, asked, window_s)
    silence = around(curves, start_ms, end_ms, recorded_until_ms(curves))
    updates = int(np.count_nonzero(~series.silent))
    measured, kind, longer_s = None, VerdictKind.UNDECIDED, None
    reason = _useless(curves, series, rates, step) or _ended(series, silence, updates)
    if asked_per_s == 0:  # purchases may bring a few pageviews
        reason = IDLE
    bins = len(binned(series, series.lag_ms, precision.most_bins)[0]) if reason is None else 0
    if reason is None and bins < MIN_BINS:
        cycles_s = MIN_BINS * (silence.rhythm_ms or 0.0) / 1000
        longer_s = max(TRY_S, math.ceil(window_s * MIN_BINS / max(bins, 1)), math.ceil(cycles_s))
        reason = verdict_words.too_few_updates(window_s)
    if reason is None:
        measured = _measure(curves, series, threshold_pct, precision)
        kind = _decide(measured, short, threshold_pct)
        reason = verdict_words.reason_of(kind, measured, short, threshold_pct, window_s)
        rhythm_s = _rhythm_s(measured, silence, updates)
        if rhythm_s and kind in (VerdictKind.FELL_BEHIND, VerdictKind.UNDECIDED):
            kind, longer_s = VerdictKind.UNDECIDED, math.ceil(MIN_BINS * rhythm_s)
            reason = verdict_words.slow_rhythm(measured, rhythm_s, updates, window_s)
        elif kind is VerdictKind.UNDECIDED:
            longer_s = shortest_window_s(measured.slope, window_s, threshold_pct)
        elif kind is VerdictKind.FELL_BEHIND and not updates:
            reason = verdict_words.silent(series, silence, window_s)
    return Verdict(
        kind=kind,
        reason=reason,
        warnings=verdict_words.warnings_of(series, step, end_ms, kind, short),
        threshold_pct=threshold_pct,
        from_ms=round(start_ms),
        until_ms=round(end_ms),
        window_s=window_s,
        updates=updates,
        next_update_s=silence.next_update_s,
        asked_per_s=asked,
        throughput=rates,
        measured=measured,
        shortest_window_s=longer_s,
    )


def _measure(curves: Curves, series: LagSeries, threshold_pct: float, precision: Precision) -> Lag:
    """All numbers; the growth of a part only where the verdict can depend on it."""

    def grown(values: Floats) -> Slope:
        bins = binned(series, values, precision.most_bins)
        return growth(*bins, threshold_pct, precision.one_sided)

    slope = grown(series.lag_ms)

    # What never reached threshold x window can't have grown by as much over it.
    matters_ms = threshold_pct / 100 * (series.end_ms - series.start_ms)

    def part(values: Floats, needed: bool) -> LagShare:
        needed = needed and float(values.max()) >= matters_ms
        p50_ms = quantile_ms(series, values, 0.5)
        return LagShare(
            p50_ms=p50_ms,
            slope=grown(values) if needed else None,
        )

    engine = part(series.engine_ms, slope.high_pct >= threshold_pct)
    fell = slope.low_pct > threshold_pct and _above(engine, threshold_pct)
    others = slope.high_pct >= threshold_pct and not fell
    return Lag(
        slope=slope,
        **_over_time(curves, series),
        processing_lag_p50_ms=quantile_ms(series, series.lag_ms, 0.5),
        processing_lag_p99_ms=quantile_ms(series, series.lag_ms, 0.99),
        processing_lag_max_ms=float(series.lag_ms.max()),
        generator=part(series.generator_ms, others),
        broker=part(series.broker_ms, others),
        engine=engine,
    )


def _over_time(curves: Curves, series: LagSeries) -> dict[str, Any]:
    """The lag itself, as the fields of `Lag` that are about it."""
    told = age(curves, series.start_ms, series.end_ms)
    at_most = dict(zip(SHARES, quantiles_ms(told, SHARES), strict=True))
    return {
        "lag_p50_ms": at_most[0.5],
        "lag_p90_ms": at_most[0.9],
        "lag_p99_ms": at_most[0.99],
        "lag_max_ms": at_most[1.0],
        "lag_distribution": tuple(
            LagAtMost(share=share, lag_ms=lag_ms) for share, lag_ms in at_most.items()
        ),
    }


def _above(part: LagShare, threshold_pct: float) -> bool:
    return part.slope is not None and part.slope.low_pct > threshold_pct


def _shortfalls(rates: Throughput, asked_per_s: float, window_s: float) -> Shortfalls:
    share = 1 - RATE_TOLERANCE - SAMPLE_MS / 1000 / max(window_s, SAMPLE_MS / 1000)
    handed, published = rates.handed_over_per_s, rates.published_per_s
    wanted = max(asked_per_s, rates.offered_per_s)
    return Shortfalls(
        f"handed over {handed:,.0f} of {wanted:,.0f} pageviews/s"
        if handed < share * wanted
        else None,
        f"took {published:,.0f} of {handed:,.0f} pageviews/s"
        if published < share * handed
        else None,
    )


def _decide(measured: Lag, short: Shortfalls, threshold_pct: float) -> VerdictKind:
    """The rule. Who holds up the engine is asked before the engine is praised, and before it is
    blamed unless its own part of the lag alone grows beyond the threshold."""
    grows = measured.slope.low_pct > threshold_pct
    if grows and _above(measured.engine, threshold_pct):
        return VerdictKind.FELL_BEHIND
    if culprit := _held_up_by(measured, short, threshold_pct):
        return culprit
    if measured.slope.high_pct < threshold_pct:
        return VerdictKind.KEPT_UP
    if not grows:
        return VerdictKind.UNDECIDED
    generator, broker = measured.generator, measured.broker
    if measured.engine.slope and measured.engine.slope.high_pct >= threshold_pct:
        return VerdictKind.FELL_BEHIND
    by_generator, by_broker = (p.slope.pct if p.slope else 0.0 for p in (generator, broker))
    return VerdictKind.GENERATOR_BOUND if by_generator >= by_broker else VerdictKind.BROKER_BOUND


def _held_up_by(measured: Lag, short: Shortfalls, threshold_pct: float) -> VerdictKind | None:
    """Generator or broker, if one of them delivered too little, ever later, or very late."""

    def holds(part: LagShare, missing: str | None) -> bool:
        late = part.p50_ms >= LATE_MS and part.p50_ms > LATE_SHARE * measured.processing_lag_p50_ms
        return missing is not None or late or _above(part, threshold_pct)

    # A generator that waits for a broker is late too: its queue to the broker is then full.
    waits = measured.broker.p50_ms >= LATE_MS
    if holds(measured.generator, short.generator):
        return VerdictKind.BROKER_BOUND if waits else VerdictKind.GENERATOR_BOUND
    return VerdictKind.BROKER_BOUND if holds(measured.broker, short.broker) else None


def _useless(
    curves: Curves, series: LagSeries, rates: Throughput, step: ClockStep | None
) -> str | None:
    """Why nothing can be computed at all, if so."""
    if series.end_ms <= series.start_ms:
        if step:
            return f"A clock was set back by {verdict_words.ago(step)} before the window: run again"
        return "The recording ends before the window begins: run again"
    if rates.offered_per_s <= 0:
        return "No pageview was due in the window: ask for a rate"
    if series.early_ms > EARLY_MS:
        return _too_early(curves, series)
    if not np.isfinite(series.lag_ms).all():
        return "The engine was at pageviews due before the recording began: let it warm up longer"
    return None


def _too_early(curves: Curves, series: LagSeries) -> str:
    """Why pageviews were counted before they were due: in the end there are more than there were,
    or else nobody knows."""
    pairs = zip(curves.processed, curves.published, strict=True)
    twice = sum(max(0.0, _end(counted) - _end(published)) for counted, published in pairs)
    if twice:
        return (
            f"The engine counted {twice:,.0f} of {sum(map(_end, curves.published)):,.0f} pageviews"
            " twice: how old the oldest is that it has not counted can't be told"
        )
    return (
        f"Pageviews were counted {series.early_ms:,.0f} ms before they were due: the clocks of"
        " engine and generator disagree, or their counts do not begin at the same pageview"
    )


def _end(curve: Curve) -> float:
    return float(curve.count[-1]) if len(curve.count) else 0.0


def _ended(series: LagSeries, silence: Silence, updates: int) -> str | None:
    """Return why there is no verdict on an engine that reported nothing any more, if so."""
    if updates or not silence.is_for_good:
        return None
    return verdict_words.ended(_window_s(series), silence.recorded_s)


def _rhythm_s(measured: Lag, silence: Silence, updates: int) -> float | None:
    """The time between two updates before the window, if that alone makes it look like falling
    behind: between them every view gets staler. Without any update in the window, that explains a
    lag of two such times, and no more."""
    if silence.rhythm_ms is None or updates >= MIN_BINS:
        return None
    most_ms = SILENT_GAPS * silence.rhythm_ms
    explained = silence.longest_ms <= most_ms and (updates or measured.lag_max_ms <= most_ms)
    return silence.rhythm_ms / 1000 if explained else None


def _window_s(series: LagSeries) -> float:
    return (series.end_ms - series.start_ms) / 1000
