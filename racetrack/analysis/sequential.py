"""The verdict as early as the data allow, and no earlier: looks at set times, the error split.

Pure functions, no I/O; docs/verdict.md has the reasons. `decide` gives the same answer while a run
goes on and from its folder afterwards: a look judges what was before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from racetrack.analysis import verdict_words
from racetrack.analysis.curves import Curves
from racetrack.analysis.lag import Floats, LagSeries, binned, lag_series, trusted
from racetrack.analysis.slope import MIN_BINS, ONE_SIDED, THRESHOLD_PCT, Precision
from racetrack.analysis.transient import steady_from
from racetrack.analysis.verdict import judge
from racetrack.results.figures import Slope, Verdict, VerdictKind

# Seconds since the rate was set. Whoever watches for longer goes on by doubling the last two.
LOOKS_S = (10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0)
# Each side of a slope's interval may err in 1 % of the runs, an eighth of it at each look. Fewer
# and longer bins are less alike, and a look costs milliseconds.
PRECISION = Precision(one_sided=1 - (1 - ONE_SIDED) / len(LOOKS_S), most_bins=30)
# Lag is never negative: one that is less than this share of what the threshold would have added
# since the rate was set has grown by less than this share of the threshold.
LEVEL_SHARE = 0.5
# A wave of 90 s has turned in a window of this length. In a shorter one a falling lag may be the
# end of a transient, or one side of a wave: a steady one falls by no more than this many thresholds
# either.
LONG_S = 100.0
FALLS_AT_MOST = 2.0
# From so many seconds on, the least of the last third has to be above the greatest of the first by
# so many milliseconds. 4 s are more than what a pause of 5 s leaves between the thirds of 10 s or
# more, 1.5 s more than what one side of a wave of 4 s does in 90 s.
NEW_HIGHS = ((LONG_S, 0.0), (60.0, 1_500.0), (0.0, 4_000.0))


def looks_ms(rate_set_ms: float, first_ms: float, until_ms: float) -> list[float]:
    """When to look, epoch milliseconds: at `first_ms`, and at each set time from there to
    `until_ms`. None if that is before the first."""
    found = [first_ms] if first_ms <= until_ms else []
    for seconds in _looks_s():
        at_ms = rate_set_ms + 1000 * seconds
        if at_ms > until_ms:
            break
        if at_ms > first_ms:
            found.append(at_ms)
    return found


def _looks_s() -> Iterator[float]:
    yield from LOOKS_S
    for doubling in count(1):
        yield from (seconds * 2.0**doubling for seconds in LOOKS_S[-2:])


def decide(
    curves: Curves,
    rate_set_ms: float,
    now_ms: float,
    asked_per_s: float | None = None,
    threshold_pct: float = THRESHOLD_PCT,
    first_ms: float | None = None,
) -> Verdict:
    """The verdict at the first look until `now_ms` that decides; that of the last if none does.

    Until `now_ms` the rate has to be the one that was set at `rate_set_ms`. `first_ms`: no look
    before this (a run is judged by all of its sampling window); None: the first set time. Before
    the first look the verdict is that of now, undecided.
    """
    curves = trusted(curves)
    if first_ms is None:
        first_ms = rate_set_ms + 1000 * LOOKS_S[0]
    found = None
    for at_ms in looks_ms(rate_set_ms, first_ms, now_ms):
        found = look(curves, rate_set_ms, at_ms, asked_per_s, threshold_pct)
        if found.kind is not VerdictKind.UNDECIDED:
            return found
    if found is None:
        early = look(curves, rate_set_ms, now_ms, asked_per_s, threshold_pct)
        why = verdict_words.too_early((first_ms - rate_set_ms) / 1000)
        found = early.model_copy(update={"kind": VerdictKind.UNDECIDED, "reason": why})
    return found


def look(
    curves: Curves,
    rate_set_ms: float,
    at_ms: float,
    asked_per_s: float | None = None,
    threshold_pct: float = THRESHOLD_PCT,
) -> Verdict:
    """What one look says: `judge` from the transient's end to `at_ms` (epoch milliseconds), held to
    what a wave can't feign, or to the level of the lag."""
    seen = _seen(curves, rate_set_ms, at_ms)
    found = judge(curves, seen.start_ms, at_ms, asked_per_s, threshold_pct, PRECISION)
    if found.measured is None:
        return found
    slope, by_slope = found.measured.slope, found.kind
    if by_slope is VerdictKind.FELL_BEHIND:
        needed_ms = next(ms for s, ms in NEW_HIGHS if seen.window_s >= s)
        if seen.rise_ms <= needed_ms:
            why = verdict_words.no_new_high(
                found.measured,
                rise_ms=seen.rise_ms,
                needed_ms=needed_ms,
                window_s=found.window_s,
            )
            return _changed(found, VerdictKind.UNDECIDED, why)
    elif by_slope in (VerdictKind.KEPT_UP, VerdictKind.UNDECIDED):
        if found.updates >= MIN_BINS and seen.is_low(slope, threshold_pct):
            why = verdict_words.low_level(
                most_ms=seen.recent_max_ms,
                since_s=seen.since_rate_s,
                threshold_pct=threshold_pct,
                window_s=found.window_s,
            )
            return _changed(found, VerdictKind.KEPT_UP, why)
        if by_slope is VerdictKind.KEPT_UP and not seen.is_steady(slope, threshold_pct):
            why = verdict_words.still_falling(found.measured, found.window_s)
            return _changed(found, VerdictKind.UNDECIDED, why)
    return found


def _changed(found: Verdict, kind: VerdictKind, reason: str) -> Verdict:
    undecided = kind is VerdictKind.UNDECIDED
    # Past LONG_S nothing but new highs can be missing; how long they take nobody knows.
    longer_s = LONG_S if undecided and found.window_s < LONG_S else None
    return found.model_copy(update={"kind": kind, "reason": reason, "shortest_window_s": longer_s})


@dataclass(frozen=True)
class _Seen:
    """What a look sees of the processing lag's bins: since when it is steady, by how much the least
    of the last third is above the greatest of the first from there on, and the greatest in the last
    third of the time since the rate was set. It ends early where the recording does."""

    start_ms: float
    window_s: float
    since_rate_s: float
    rise_ms: float
    recent_max_ms: float

    def is_low(self, slope: Slope, threshold_pct: float) -> bool:
        """Whether the lag's level alone bounds its growth, and its slope does not say otherwise."""
        most_ms = LEVEL_SHARE * threshold_pct / 100 * 1000 * self.since_rate_s
        return self.recent_max_ms <= most_ms and slope.low_pct <= threshold_pct

    def is_steady(self, slope: Slope, threshold_pct: float) -> bool:
        """Whether what does not rise is known not to fall either, or was watched for long."""
        return self.window_s >= LONG_S or slope.low_pct > -FALLS_AT_MOST * threshold_pct


def _seen(curves: Curves, rate_set_ms: float, at_ms: float) -> _Seen:
    series = _known_series(curves, rate_set_ms, at_ms)
    since_rate_s = (series.end_ms - rate_set_ms) / 1000
    if not len(series.at_ms) or not np.isfinite(series.lag_ms).all():
        return _Seen(rate_set_ms, since_rate_s, since_rate_s, 0.0, np.inf)
    times, lags = binned(series, series.lag_ms, PRECISION.most_bins)
    first = steady_from(times, lags)
    # Halfway between the last bin that was left out and the first that was not.
    since_ms = float(times[first - 1] + times[first]) / 2 if first else 0.0
    return _Seen(
        start_ms=series.start_ms + since_ms,
        window_s=(series.end_ms - series.start_ms - since_ms) / 1000,
        since_rate_s=since_rate_s,
        rise_ms=_rise(times[first:], lags[first:]),
        recent_max_ms=float(lags[times >= times[0] + (times[-1] - times[0]) * 2 / 3].max()),
    )


def _known_series(curves: Curves, rate_set_ms: float, at_ms: float) -> LagSeries:
    """The lag from where it is known: an engine that has just begun may be at pageviews that were
    due before the recording began. All since the rate was set if it is not known at the end."""
    series = lag_series(curves, rate_set_ms, at_ms)
    unknown = np.flatnonzero(~np.isfinite(series.lag_ms))
    if not len(unknown) or unknown[-1] == len(series.at_ms) - 1:
        return series
    return lag_series(curves, float(series.at_ms[unknown[-1] + 1]), at_ms)


def _rise(times: Floats, lags: Floats) -> float:
    span = times[-1] - times[0]
    first, last = times <= times[0] + span / 3, times >= times[0] + span * 2 / 3
    return float(lags[last].min() - lags[first].max())
