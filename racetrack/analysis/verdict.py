"""Verdict: whether the engine kept up. docs/verdict.md explains the rule.

Sustainable throughput (Karimov et al., "Benchmarking Distributed Stream Data Processing Systems",
ICDE 2018) is the highest load at which event-time latency does not grow continuously. As in
Theodolite (Henning & Hasselbring, 2021), the growth is the slope of a line fitted to the lag after
warm-up, and is compared with a threshold. Here the fit is robust (Theil-Sen), and the slope has an
interval (moving-block bootstrap, Kuensch 1989). If the interval contains the threshold, the verdict
is "undecided".

`judge` applies this rule to one window. `decide` applies it several times during a run, at fixed
times called looks, and returns the first verdict that is not "undecided". The probability of a
false verdict is divided among the looks. A look uses only data recorded before it, so `decide`
gives the same verdict during the run and later from the run folder.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from racetrack.analysis.curves import (
    ClockStep,
    Curve,
    Curves,
    Floats,
    TrustedCurves,
    UpdateGaps,
    deleted_unread,
    recorded_until_ms,
    throughput,
    trusted,
    update_gaps,
)
from racetrack.analysis.lag import (
    BIN_MS,
    SILENT_GAPS,
    LagSeries,
    age,
    binned,
    distribution,
    generator_late_ms,
    lag_series,
    percentiles,
    quantile_ms,
)
from racetrack.analysis.slope import (
    MIN_BINS,
    ONE_SIDED,
    THRESHOLD_PCT,
    TRY_S,
    Precision,
    growth,
    shortest_window_s,
    transient_length,
)
from racetrack.results.figures import (
    Lag,
    LagShare,
    Slope,
    Throughput,
    Verdict,
    VerdictKind,
)

# Largest shortfall of the generator, as a fraction of the requested rate.
RATE_TOLERANCE = 0.01
# Counts are sampled every 100 ms, so the ends of a window are uncertain by this much.
SAMPLE_MS = 100.0
# The engine can't be judged if the generator or the broker causes at least LATE_MS of the median
# lag and more than this share of it.
LATE_MS, LATE_SHARE = 1_000.0, 0.5
# Clocks disagree if an event was counted before it was due by more than a sampling interval.
EARLY_MS = 100.0
PLAIN = Precision()
IDLE = "No verdict at rate 0: the run measures what the engine costs when idle"
DELETED = (
    "No verdict: the broker deleted {:,} events before the engine had counted them, so its"
    " backlog and lag are unknown"
)
# Times of the looks, in seconds since the rate was set. Later looks are at twice the time of the
# look before the last.
LOOKS_S = (10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0)
# The error probability of 1 % on each side of the interval is divided among the looks. Fewer and
# longer bins than in `judge` are used, because they are less correlated.
PRECISION = Precision(one_sided=1 - (1 - ONE_SIDED) / len(LOOKS_S), most_bins=30)
# If the lag is below this fraction of (threshold x time since the rate was set), it has grown by
# less than this fraction of the threshold, because it began at 0 or above.
LEVEL_SHARE = 0.5
# A window of this length contains the rise and the fall of a wave of 90 s. In a shorter window, a
# falling lag may be the end of a transient or the fall of a wave, so a lag is only called steady if
# it falls by less than FALLS_AT_MOST times the threshold.
LONG_S = 100.0
FALLS_AT_MOST = 2.0
# Pairs of a window's shortest length in seconds, and a rise of the lag in milliseconds. The first
# pair whose length the window has applies: "fell behind" needs a larger rise than that, so that a
# passing disturbance does not cause it. The rise is the minimum lag of the last third of the window
# minus the maximum of the first third. A pause of 5 s causes less than 4 s of rise in a window of
# at least 10 s; a sawtooth that rises by 4 s in 90 s and then drops causes less than 1.5 s in one
# of 60 to 100 s.
NEW_HIGHS = ((LONG_S, 0.0), (60.0, 1_500.0), (0.0, 4_000.0))


@dataclass(frozen=True)
class Shortfalls:
    """Texts about the shortfall of the generator and of the broker; None if it had none."""

    generator: str | None
    broker: str | None


@dataclass(frozen=True)
class _Outcome:
    """The outcome of the rule for one window, with the fields of `Verdict`."""

    kind: VerdictKind
    reason: str
    measured: Lag | None = None
    shortest_window_s: float | None = None


def judge(
    curves: Curves,
    start_ms: float,
    end_ms: float,
    requested_per_s: float | None = None,
    precision: Precision = PLAIN,
) -> Verdict:
    """Return the verdict on the window from `start_ms` to `end_ms` (epoch milliseconds), which must
    not include warm-up.

    `requested_per_s` is the requested rate, which must be constant in the window. With None, the
    offered rate is used instead.

    Raises:
        ValueError: the window is empty.
    """
    if end_ms <= start_ms:
        raise ValueError(f"no verdict on {start_ms}..{end_ms} ms")
    curves = trusted(curves)
    series = lag_series(curves, start_ms, end_ms)
    rates = throughput(curves, start_ms, end_ms)
    requested = rates.offered_per_s if requested_per_s is None else requested_per_s
    short = _shortfalls(rates, requested, _window_s(series))
    gaps = update_gaps(curves, start_ms, end_ms, recorded_until_ms(curves))
    updates = int(np.count_nonzero(~series.silent))
    # Check the requested rate, not the offered one: purchases may cause a few events.
    if requested_per_s == 0:
        judged = _Outcome(VerdictKind.UNDECIDED, IDLE)
    elif deleted := deleted_unread(curves):
        judged = _Outcome(VerdictKind.UNDECIDED, DELETED.format(deleted))
    elif why_not := _why_not_judged(curves, series, rates) or _ended(series, gaps, updates):
        judged = _Outcome(VerdictKind.UNDECIDED, why_not)
    else:
        judged = _judge_lag(curves, series, short, gaps, updates, precision)
    return Verdict(
        kind=judged.kind,
        reason=judged.reason,
        warnings=_warnings(curves, series, end_ms, judged.kind, short),
        threshold_pct=THRESHOLD_PCT,
        from_ms=round(start_ms),
        until_ms=round(end_ms),
        window_s=_window_s(series),
        updates=updates,
        next_update_s=gaps.next_update_s,
        requested_per_s=requested,
        throughput=rates,
        measured=judged.measured,
        shortest_window_s=judged.shortest_window_s,
    )


def _judge_lag(
    curves: Curves,
    series: LagSeries,
    short: Shortfalls,
    gaps: UpdateGaps,
    updates: int,
    precision: Precision,
) -> _Outcome:
    """Apply the rule to a window whose lag is known. `updates` is the number of updates of the
    engine in it."""
    window_s = _window_s(series)
    bins = len(binned(series, series.lag_ms, precision.most_bins)[0])
    if bins < MIN_BINS:
        cycles_s = MIN_BINS * (gaps.interval_ms or 0.0) / 1000
        longer_s = max(TRY_S, math.ceil(window_s * MIN_BINS / max(bins, 1)), math.ceil(cycles_s))
        why = f"Undecided: too few updates of the engine to see a trend, {_judged(window_s)}"
        return _Outcome(VerdictKind.UNDECIDED, why, shortest_window_s=longer_s)
    measured = _measure(curves, series, precision)
    kind = _decide(measured, short)
    interval_s = _interval_s(measured, gaps, updates)
    if interval_s and kind in (VerdictKind.FELL_BEHIND, VerdictKind.UNDECIDED):
        why = _why_long_interval(measured, interval_s, updates, window_s)
        longer_s = math.ceil(MIN_BINS * interval_s)
        return _Outcome(VerdictKind.UNDECIDED, why, measured, longer_s)
    if kind is VerdictKind.FELL_BEHIND and not updates:
        return _Outcome(kind, _why_silent(series, gaps, window_s), measured)
    longer = shortest_window_s(measured.slope, window_s) if kind is VerdictKind.UNDECIDED else None
    return _Outcome(kind, _why_by_slope(kind, measured, short, window_s), measured, longer)


def _measure(curves: Curves, series: LagSeries, precision: Precision) -> Lag:
    """Return the measured lag. The slope of the generator's, the broker's and the engine's share is
    computed only if the verdict can depend on it."""

    def grown(values: Floats) -> Slope:
        bins = binned(series, values, precision.most_bins)
        return growth(*bins, precision.one_sided)

    slope = grown(series.lag_ms)

    # A share that stays below threshold x window length cannot have grown by the threshold.
    matters_ms = THRESHOLD_PCT / 100 * (series.end_ms - series.start_ms)

    def part(values: Floats, needed: bool) -> LagShare:
        needed = needed and float(values.max()) >= matters_ms
        p50_ms = quantile_ms(series, values, 0.5)
        return LagShare(
            p50_ms=p50_ms,
            slope=grown(values) if needed else None,
        )

    engine = part(series.engine_ms, slope.high_pct >= THRESHOLD_PCT)
    fell = slope.low_pct > THRESHOLD_PCT and _above(engine)
    others = slope.high_pct >= THRESHOLD_PCT and not fell
    ages = age(curves, series.start_ms, series.end_ms)
    return Lag(
        slope=slope,
        **percentiles(ages),
        lag_distribution=distribution(ages),
        processing_lag_p50_ms=quantile_ms(series, series.lag_ms, 0.5),
        processing_lag_p99_ms=quantile_ms(series, series.lag_ms, 0.99),
        processing_lag_max_ms=float(series.lag_ms.max()),
        generator=part(series.generator_ms, others),
        broker=part(series.broker_ms, others),
        engine=engine,
    )


def _above(part: LagShare) -> bool:
    return part.slope is not None and part.slope.low_pct > THRESHOLD_PCT


def _shortfalls(rates: Throughput, requested_per_s: float, window_s: float) -> Shortfalls:
    share = 1 - RATE_TOLERANCE - SAMPLE_MS / 1000 / max(window_s, SAMPLE_MS / 1000)
    handed, published = rates.handed_over_per_s, rates.published_per_s
    wanted = max(requested_per_s, rates.offered_per_s)
    return Shortfalls(
        f"handed over {handed:,.0f} of {wanted:,.0f} events/s" if handed < share * wanted else None,
        f"took {published:,.0f} of {handed:,.0f} events/s" if published < share * handed else None,
    )


def _decide(measured: Lag, short: Shortfalls) -> VerdictKind:
    """Apply the rule. If generator or broker is a bottleneck, the verdict names it, unless the
    engine's own share of the lag grows by more than the threshold."""
    grows = measured.slope.low_pct > THRESHOLD_PCT
    if grows and _above(measured.engine):
        return VerdictKind.FELL_BEHIND
    if bottleneck := _bottleneck_before_engine(measured, short):
        return bottleneck
    if measured.slope.high_pct < THRESHOLD_PCT:
        return VerdictKind.KEPT_UP
    if not grows:
        return VerdictKind.UNDECIDED
    generator, broker = measured.generator, measured.broker
    if measured.engine.slope and measured.engine.slope.high_pct >= THRESHOLD_PCT:
        return VerdictKind.FELL_BEHIND
    by_generator, by_broker = (p.slope.pct if p.slope else 0.0 for p in (generator, broker))
    return VerdictKind.GENERATOR_BOUND if by_generator >= by_broker else VerdictKind.BROKER_BOUND


def _bottleneck_before_engine(measured: Lag, short: Shortfalls) -> VerdictKind | None:
    """Return the verdict "generator bound" or "broker bound" if that component delivered too few
    events, with a growing delay, or very late."""

    def limits(part: LagShare, missing: str | None) -> bool:
        late = part.p50_ms >= LATE_MS and part.p50_ms > LATE_SHARE * measured.processing_lag_p50_ms
        return missing is not None or late or _above(part)

    # A slow broker also makes the generator late, because the generator's send queue is full.
    waits = measured.broker.p50_ms >= LATE_MS
    if limits(measured.generator, short.generator):
        return VerdictKind.BROKER_BOUND if waits else VerdictKind.GENERATOR_BOUND
    return VerdictKind.BROKER_BOUND if limits(measured.broker, short.broker) else None


def _why_not_judged(curves: TrustedCurves, series: LagSeries, rates: Throughput) -> str | None:
    """Return why the lag cannot be computed; None if it can."""
    if series.end_ms <= series.start_ms:
        if curves.step:
            return f"A clock was set back by {_step(curves.step)} before the window: run again"
        return "The recording ends before the window begins: run again"
    if rates.offered_per_s <= 0:
        return "No event was due in the window: ask for a rate"
    if series.early_ms > EARLY_MS:
        return _too_early(curves, series)
    if not np.isfinite(series.lag_ms).all():
        return "The engine was at events due before the recording began: use a longer warm-up"
    return None


def _too_early(curves: Curves, series: LagSeries) -> str:
    """Return why events were counted before they were due: some were counted twice, or clocks or
    counts disagree."""
    pairs = zip(curves.processed, curves.published, strict=True)
    twice = sum(max(0.0, _end(counted) - _end(published)) for counted, published in pairs)
    if twice:
        return (
            f"The engine counted {twice:,.0f} of {sum(map(_end, curves.published)):,.0f} events"
            " twice: the age of the oldest uncounted event is unknown"
        )
    return (
        f"Events were counted {series.early_ms:,.0f} ms before they were due: the clocks of"
        " engine and generator disagree, or their counts do not begin at the same event"
    )


def _end(curve: Curve) -> float:
    return float(curve.count[-1]) if len(curve.count) else 0.0


def _ended(series: LagSeries, gaps: UpdateGaps, updates: int) -> str | None:
    """Return why there is no verdict if the engine's updates have ended; None if they have not."""
    if updates or not gaps.updates_ended:
        return None
    return (
        f"Undecided: no update of the engine in {_window_s(series):.0f} s, nor in the"
        f" {gaps.recorded_s:.0f} s after them: it has ended or hangs, or its count can no longer be"
        " read"
    )


def _interval_s(measured: Lag, gaps: UpdateGaps, updates: int) -> float | None:
    """Return the update interval before the window, in seconds, if it is so long that it alone can
    explain the growth of the lag, since lag always grows between two updates. None if it cannot."""
    if gaps.interval_ms is None or updates >= MIN_BINS:
        return None
    most_ms = SILENT_GAPS * gaps.interval_ms
    explained = gaps.longest_ms <= most_ms and (updates or measured.lag_max_ms <= most_ms)
    return gaps.interval_ms / 1000 if explained else None


def _window_s(series: LagSeries) -> float:
    return (series.end_ms - series.start_ms) / 1000


def looks_ms(rate_set_ms: float, first_ms: float, until_ms: float) -> list[float]:
    """Return the times of the looks in epoch milliseconds: `first_ms`, then each fixed time between
    `first_ms` and `until_ms`. Empty if `until_ms` is before `first_ms`."""
    times_ms = [first_ms] if first_ms <= until_ms else []
    for seconds in _looks_s():
        at_ms = rate_set_ms + 1000 * seconds
        if at_ms > until_ms:
            break
        if at_ms > first_ms:
            times_ms.append(at_ms)
    return times_ms


def _looks_s() -> Iterator[float]:
    yield from LOOKS_S
    for doubling in count(1):
        yield from (seconds * 2.0**doubling for seconds in LOOKS_S[-2:])


def decide(
    curves: Curves,
    rate_set_ms: float,
    now_ms: float,
    requested_per_s: float | None = None,
    first_ms: float | None = None,
) -> Verdict:
    """Return the first verdict of the looks up to `now_ms` that is not "undecided". If there is
    none, return the verdict of the last look; before the first look, return "undecided".

    The rate must not change between `rate_set_ms` and `now_ms`. `first_ms` is the time of the first
    look, by default LOOKS_S[0] seconds after the rate was set. A run passes the end of its sampling
    window as `first_ms`.
    """
    return decide_together([curves], rate_set_ms, now_ms, requested_per_s, first_ms)[0]


def decide_together(
    recorded: Sequence[Curves],
    rate_set_ms: float,
    now_ms: float,
    requested_per_s: float | None = None,
    first_ms: float | None = None,
) -> list[Verdict]:
    """Return the verdicts of one look on several curves: on an engine's count, which comes first,
    and on its views. All are on the same window, which begins when the last of them is steady. The
    look is the first at which all are decided, or one fell behind; otherwise as in `decide`.

    `requested_per_s` is the rate of the count.
    """
    recorded = [trusted(curves) for curves in recorded]
    if first_ms is None:
        first_ms = rate_set_ms + 1000 * LOOKS_S[0]

    def verdicts(at_ms: float) -> list[Verdict]:
        from_ms = max(_steady_from_ms(curves, rate_set_ms, at_ms) for curves in recorded)
        rates = [requested_per_s, *[None] * (len(recorded) - 1)]
        return [
            look(curves, rate_set_ms, at_ms, rate, from_ms)
            for curves, rate in zip(recorded, rates, strict=True)
        ]

    last = None
    for at_ms in looks_ms(rate_set_ms, first_ms, now_ms):
        last = verdicts(at_ms)
        if are_decided([verdict.kind for verdict in last]):
            return last
    if last is None:
        first_s = (first_ms - rate_set_ms) / 1000
        why = f"Undecided: too early; the first look is {first_s:g} s after the rate was set"
        early = {"kind": VerdictKind.UNDECIDED, "reason": why}
        last = [verdict.model_copy(update=early) for verdict in verdicts(now_ms)]
    return last


def are_decided(kinds: Sequence[VerdictKind]) -> bool:
    """Return whether no later look can change the worst of these verdicts."""
    return VerdictKind.UNDECIDED not in kinds or VerdictKind.FELL_BEHIND in kinds


def look(
    curves: Curves,
    rate_set_ms: float,
    at_ms: float,
    requested_per_s: float | None = None,
    from_ms: float | None = None,
) -> Verdict:
    """Return the verdict of the look at `at_ms` (epoch milliseconds).

    `judge` is applied to the time from `from_ms`, by default the end of the initial transient.
    "Fell behind" and "kept up" need further checks, so that a passing wave of lag does not decide.
    A lag that is low enough is "kept up" even if its slope is undecided."""
    if from_ms is None:
        from_ms = _steady_from_ms(curves, rate_set_ms, at_ms)
    steady = _steady_part(curves, rate_set_ms, at_ms, from_ms)
    verdict = judge(curves, from_ms, at_ms, requested_per_s, PRECISION)
    if verdict.measured is None:
        return verdict
    slope, by_slope = verdict.measured.slope, verdict.kind
    if by_slope is VerdictKind.FELL_BEHIND:
        needed_ms = next(ms for s, ms in NEW_HIGHS if steady.window_s >= s)
        if steady.rise_ms <= needed_ms:
            why = (
                f"Undecided: lag grows by {_growth(slope)} of real time, but that may be a passing"
                f" wave (it rose by {steady.rise_ms:,.0f} ms; a window this short needs"
                f" {needed_ms:,.0f} ms), {_judged(verdict.window_s)}"
            )
            return _changed(verdict, VerdictKind.UNDECIDED, why)
    elif by_slope in (VerdictKind.KEPT_UP, VerdictKind.UNDECIDED):
        if verdict.updates >= MIN_BINS and steady.is_low(slope):
            why = (
                f"Kept up: lag stays low (at most {steady.recent_max_ms:,.0f} ms"
                f" {steady.since_rate_s:.0f} s after the rate was set, so it grew by less than"
                f" {THRESHOLD_PCT:g} % of real time), {_judged(verdict.window_s)}"
            )
            return _changed(verdict, VerdictKind.KEPT_UP, why)
        if by_slope is VerdictKind.KEPT_UP and not steady.is_steady(slope):
            why = (
                f"Undecided: lag is still falling (grows by {_growth(slope)} of real time), and may"
                f" settle or rise again, {_judged(verdict.window_s)}"
            )
            return _changed(verdict, VerdictKind.UNDECIDED, why)
    return verdict


def _changed(verdict: Verdict, kind: VerdictKind, reason: str) -> Verdict:
    undecided = kind is VerdictKind.UNDECIDED
    # In a window longer than LONG_S only the required rise can be missing. The time at which the
    # lag will have risen that much can't be estimated.
    longer_s = LONG_S if undecided and verdict.window_s < LONG_S else None
    return verdict.model_copy(
        update={"kind": kind, "reason": reason, "shortest_window_s": longer_s}
    )


@dataclass(frozen=True)
class _SteadyPart:
    """Processing lag after the initial transient, up to a look.

    `rise_ms` is the minimum of the last third minus the maximum of the first third. `recent_max_ms`
    is the maximum in the last third of the time since the rate was set.
    """

    window_s: float
    since_rate_s: float
    rise_ms: float
    recent_max_ms: float

    def is_low(self, slope: Slope) -> bool:
        """Return whether the lag is so low that it cannot have grown by the threshold, and the
        slope does not contradict that."""
        most_ms = LEVEL_SHARE * THRESHOLD_PCT / 100 * 1000 * self.since_rate_s
        return self.recent_max_ms <= most_ms and slope.low_pct <= THRESHOLD_PCT

    def is_steady(self, slope: Slope) -> bool:
        """Return whether a lag that does not grow is steady: the window is long, or the lag does
        not fall too fast."""
        return self.window_s >= LONG_S or slope.low_pct > -FALLS_AT_MOST * THRESHOLD_PCT


def _steady_part(curves: Curves, rate_set_ms: float, at_ms: float, from_ms: float) -> _SteadyPart:
    series = _series_of_rate(curves, rate_set_ms, at_ms)
    since_rate_s = (series.end_ms - rate_set_ms) / 1000
    window_s = (series.end_ms - from_ms) / 1000
    if not _is_known(series):
        return _SteadyPart(window_s, since_rate_s, 0.0, np.inf)
    times, lags = binned(series, series.lag_ms, PRECISION.most_bins)
    steady = times >= from_ms - series.start_ms
    return _SteadyPart(
        window_s=window_s,
        since_rate_s=since_rate_s,
        rise_ms=_rise(times[steady], lags[steady]) if steady.any() else 0.0,
        recent_max_ms=float(lags[times >= times[0] + (times[-1] - times[0]) * 2 / 3].max()),
    )


def _steady_from_ms(curves: Curves, rate_set_ms: float, at_ms: float) -> float:
    """Return the end of the initial transient, as known at a look."""
    series = _series_of_rate(curves, rate_set_ms, at_ms)
    if not _is_known(series):
        return rate_set_ms
    times, lags = binned(series, series.lag_ms, PRECISION.most_bins)
    first = transient_length(times, lags)
    # The steady part begins halfway between the last bin of the transient and the next bin.
    return series.start_ms + (float(times[first - 1] + times[first]) / 2 if first else 0.0)


def _is_known(series: LagSeries) -> bool:
    return bool(len(series.at_ms) and np.isfinite(series.lag_ms).all())


def _series_of_rate(curves: Curves, rate_set_ms: float, at_ms: float) -> LagSeries:
    """Return the lag from the first update on after which all uncounted events were due since
    the rate was set. Earlier updates show the backlog that arose while the engine loaded its demo.
    If the engine has not caught up with it yet, return the lag since the rate was set."""
    series = lag_series(curves, rate_set_ms, at_ms)
    older = np.flatnonzero(series.at_ms - series.lag_ms < rate_set_ms)
    if len(older) and older[-1] == len(series.at_ms) - 1:
        return series
    first = older[-1] + 1 if len(older) else 0
    began = series.at_ms[first:][~series.silent[first:]]
    return lag_series(curves, float(began[0]), at_ms) if len(began) else series


def _rise(times: Floats, lags: Floats) -> float:
    span = times[-1] - times[0]
    first, last = times <= times[0] + span / 3, times >= times[0] + span * 2 / 3
    return float(lags[last].min() - lags[first].max())


def _why_by_slope(kind: VerdictKind, measured: Lag, short: Shortfalls, window_s: float) -> str:
    """Return the reason for a verdict that is based on the slope of the lag."""
    grows, judged = _growth(measured.slope), _judged(window_s)
    limit = f"limit {THRESHOLD_PCT:g} %"
    if kind is VerdictKind.KEPT_UP:
        return f"Kept up: lag is steady (grows by {grows} of real time; {limit}), {judged}"
    if kind is VerdictKind.FELL_BEHIND:
        return f"Fell behind: lag grows by {grows} of real time ({limit}), {judged}"
    if kind is VerdictKind.UNDECIDED:
        return (
            f"Undecided: too noisy to tell whether lag is steady (grows by {grows} of real time;"
            f" {limit}), {judged}"
        )
    name = "generator" if kind is VerdictKind.GENERATOR_BOUND else "broker"
    part = measured.generator if kind is VerdictKind.GENERATOR_BOUND else measured.broker
    missing = short.generator if kind is VerdictKind.GENERATOR_BOUND else short.broker
    facts = [f"it {missing}"] if missing else []
    if part.slope:
        facts.append(f"its part of the lag grows by {_signed(part.slope.pct)} % of real time")
    whole_ms = measured.processing_lag_p50_ms
    facts.append(f"it causes {part.p50_ms:,.0f} of {whole_ms:,.0f} ms of the median lag")
    return f"The {name} was the bottleneck, not the engine: {', '.join(facts)}; {judged}"


def _why_long_interval(measured: Lag, interval_s: float, updates: int, window_s: float) -> str:
    """Return the reason for "undecided" if the update interval is too long for the window."""
    count = "no update" if not updates else "1 update" if updates == 1 else f"{updates} updates"
    return (
        f"Undecided: {count} in {window_s:.0f} s are too few to see a trend (the engine updates"
        f" every {interval_s:.1f} s); lag was at most {measured.lag_max_ms / 1000:.1f} s"
    )


def _why_silent(series: LagSeries, gaps: UpdateGaps, window_s: float) -> str:
    """Return the reason for "fell behind" if the engine made no update in the window."""
    after_s = gaps.next_update_s
    then = "" if after_s is None else f"; its next update came {after_s:.1f} s later"
    return (
        f"Fell behind: no update of the engine in {window_s:.0f} s, at whose end the oldest"
        f" uncounted event was {series.lag_ms[-1] / 1000:.1f} s old{then}"
    )


def _step(step: ClockStep) -> str:
    """Return a text on how far a clock was set back, and in the rows of which curve."""
    return f"{step.from_ms - step.to_ms:,.0f} ms (rows of {step.curve}/{step.partition})"


def _warnings(
    curves: TrustedCurves, series: LagSeries, end_ms: float, kind: VerdictKind, short: Shortfalls
) -> tuple[str, ...]:
    """Return the warnings of a verdict. Those about the generator come before those about the
    engine, which may be their consequence."""
    warnings = []
    if curves.step and curves.step.to_ms < end_ms:
        warnings.append(
            f"A clock was set back by {_step(curves.step)}: only the time before is judged"
        )
    elif end_ms - series.end_ms > BIN_MS:
        warnings.append(
            f"The recording ends {(end_ms - series.end_ms) / 1000:.1f} s before the window"
        )
    late_ms = generator_late_ms(curves, series.start_ms, series.end_ms)
    if late_ms >= LATE_MS:
        warnings.append(
            f"The generator was up to {late_ms / 1000:.1f} s late, which is part of the lag"
        )
    if kind is VerdictKind.FELL_BEHIND and short.generator:
        warnings.append(
            f"It fell behind at less than the requested rate: the generator {short.generator}"
        )
    if series.silent.any():
        ends_ms = [series.start_ms, *series.at_ms[~series.silent], series.end_ms]
        gap_s = float(np.max(np.diff(ends_ms))) / 1000
        warnings.append(
            f"The engine's longest gap between two updates was {gap_s:.1f} s: more than two"
            " typical intervals"
        )
    return tuple(warnings)


def _growth(slope: Slope) -> str:
    return f"{_signed(slope.low_pct)} to {_signed(slope.high_pct)} %"


def _signed(pct: float) -> str:
    """Format a percentage with a typographic minus sign, and with 0.00 instead of -0.00."""
    shown = f"{pct:.2f}"
    return "0.00" if shown == "-0.00" else shown.replace("-", "−")


def _judged(window_s: float) -> str:
    return f"judged over {window_s:.0f} s"
