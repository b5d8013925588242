"""Reasons for verdicts: one sentence each, with the figures that decided."""

from dataclasses import dataclass

import numpy as np

from racetrack.analysis.curves import ClockStep, UpdateGaps
from racetrack.analysis.lag import BIN_MS, LagSeries
from racetrack.results.figures import Lag, VerdictKind


@dataclass(frozen=True)
class Shortfalls:
    """Texts about the shortfall of the generator and of the broker; None if it had none."""

    generator: str | None
    broker: str | None


def reason_of(
    kind: VerdictKind, measured: Lag, short: Shortfalls, threshold_pct: float, window_s: float
) -> str:
    """Return the reason for a verdict that is based on the slope of the lag."""
    grows, judged = _growth(measured), _judged(window_s)
    limit = f"limit {threshold_pct:g} %"
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


def low_level(most_ms: float, since_s: float, threshold_pct: float, window_s: float) -> str:
    """Return the reason for "kept up" if the lag is too low to have grown by the threshold."""
    return (
        f"Kept up: lag stays low (at most {most_ms:,.0f} ms {since_s:.0f} s after the rate was set,"
        f" so it grew by less than {threshold_pct:g} % of real time), {_judged(window_s)}"
    )


def no_new_high(measured: Lag, rise_ms: float, needed_ms: float, window_s: float) -> str:
    """Return the reason for "undecided" if a growing lag may be part of a wave."""
    return (
        f"Undecided: lag grows by {_growth(measured)} of real time, but that may be a passing wave"
        f" (it rose by {rise_ms:,.0f} ms; a window this short needs {needed_ms:,.0f} ms),"
        f" {_judged(window_s)}"
    )


def still_falling(measured: Lag, window_s: float) -> str:
    """Return the reason for "undecided" if the lag is still falling."""
    return (
        f"Undecided: lag is still falling (grows by {_growth(measured)} of real time), and may"
        f" settle or rise again, {_judged(window_s)}"
    )


def too_early(first_s: float) -> str:
    """Return the reason for "undecided" before the first look; `first_s` is its time."""
    return f"Undecided: too early; the first look is {first_s:g} s after the rate was set"


def too_few_updates(window_s: float) -> str:
    """Return the reason for "undecided" if there are too few updates to compute a slope."""
    return f"Undecided: too few updates of the engine to see a trend, {_judged(window_s)}"


def long_interval(measured: Lag, interval_s: float, updates: int, window_s: float) -> str:
    """Return the reason for "undecided" if the update interval is too long for the window."""
    count = "no update" if not updates else "1 update" if updates == 1 else f"{updates} updates"
    return (
        f"Undecided: {count} in {window_s:.0f} s are too few to see a trend (the engine updates"
        f" every {interval_s:.1f} s); lag was at most {measured.lag_max_ms / 1000:.1f} s"
    )


def silent(series: LagSeries, gaps: UpdateGaps, window_s: float) -> str:
    """Return the reason for "fell behind" if the engine made no update in the window."""
    after_s = gaps.next_update_s
    then = "" if after_s is None else f"; its next update came {after_s:.1f} s later"
    return (
        f"Fell behind: no update of the engine in {window_s:.0f} s, at whose end the oldest"
        f" uncounted pageview was {series.lag_ms[-1] / 1000:.1f} s old{then}"
    )


def ended(window_s: float, recorded_s: float) -> str:
    """Return the reason for "undecided" if the updates ended: the engine may have counted
    everything without reporting it."""
    return (
        f"Undecided: no update of the engine in {window_s:.0f} s, nor in the {recorded_s:.0f} s"
        " after them: it has ended or hangs, or its count can no longer be read"
    )


def ago(step: ClockStep) -> str:
    """Return a text on how far a clock was set back, and in the rows of which curve."""
    return f"{step.from_ms - step.to_ms:,.0f} ms (rows of {step.curve}/{step.partition})"


def warnings_of(
    series: LagSeries, step: ClockStep | None, end_ms: float, kind: VerdictKind, short: Shortfalls
) -> tuple[str, ...]:
    """Return the warnings of a verdict."""
    found = []
    if step and step.to_ms < end_ms:
        found.append(f"A clock was set back by {ago(step)}: only the time before is judged")
    elif end_ms - series.end_ms > BIN_MS:
        found.append(
            f"The recording ends {(end_ms - series.end_ms) / 1000:.1f} s before the window"
        )
    if kind is VerdictKind.FELL_BEHIND and short.generator:
        found.append(
            f"It fell behind at less than the requested rate: the generator {short.generator}"
        )
    if series.silent.any():
        ends_ms = [series.start_ms, *series.at_ms[~series.silent], series.end_ms]
        gap_s = float(np.max(np.diff(ends_ms))) / 1000
        found.append(
            f"The engine's longest gap between two updates was {gap_s:.1f} s: more than two"
            " typical intervals"
        )
    return tuple(found)


def _growth(measured: Lag) -> str:
    slope = measured.slope
    return f"{_signed(slope.low_pct)} to {_signed(slope.high_pct)} %"


def _signed(pct: float) -> str:
    """Format a percentage with a typographic minus sign, and with 0.00 instead of -0.00."""
    shown = f"{pct:.2f}"
    return "0.00" if shown == "-0.00" else shown.replace("-", "−")


def _judged(window_s: float) -> str:
    return f"judged over {window_s:.0f} s"
