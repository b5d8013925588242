"""A verdict in words, with the numbers that it rests on."""

from dataclasses import dataclass

import numpy as np

from racetrack.analysis.lag import BIN_MS, ClockStep, LagSeries
from racetrack.analysis.silence import Silence
from racetrack.results_record import Lag, VerdictKind


@dataclass(frozen=True)
class Shortfalls:
    """What the generator did not hand over of what was asked, and the broker not take of that."""

    generator: str | None
    broker: str | None


def slow_rhythm(measured: Lag, rhythm_s: float, updates: int, window_s: float) -> str:
    return (
        f"Undecided: the engine tells of an update every {rhythm_s:.1f} s, and the window of"
        f" {window_s:.1f} s has {updates or 'none'}, too few for a slope; its lag was"
        f" {measured.lag_max_ms / 1000:.1f} s at most"
    )


def silent(series: LagSeries, silence: Silence, window_s: float) -> str:
    after_s = silence.next_update_s
    then = "" if after_s is None else f"; it told of the next update {after_s:.1f} s later"
    return (
        f"Fell behind: the engine told of no update in the {window_s:.1f} s of the window, at whose"
        f" end the oldest pageview not counted was {series.lag_ms[-1] / 1000:.1f} s old{then}"
    )


def ago(step: ClockStep) -> str:
    return f"{step.from_ms - step.to_ms:,.0f} ms (rows of {step.curve}/{step.partition})"


def no_new_high(measured: Lag, confidence: float, rise_ms: float, needed_ms: float) -> str:
    told = _slope(measured, confidence)
    return (
        f"Undecided: {told}, but a wave could look the same: between the highest of the first"
        f" third and the lowest of the last, lag rose by {rise_ms:,.0f} ms, and so short a"
        f" window needs more than {needed_ms:,.0f} ms"
    )


def low_level(measured: Lag, most_ms: float, since_s: float, threshold_pct: float) -> str:
    return (
        f"Kept up: {since_s:.0f} s after the rate was set the processing lag is at most"
        f" {most_ms:,.0f} ms on average, so it grew by less than {threshold_pct:g} %;"
        f" {_level(measured)}"
    )


def still_falling(measured: Lag, confidence: float) -> str:
    told = _slope(measured, confidence)
    return f"Undecided: {told}: it may still fall to where it will be steady, or to rise again"


def too_early(first_s: float) -> str:
    return f"Undecided: the first look is {first_s:g} s after the rate was set"


def _slope(measured: Lag, confidence: float) -> str:
    slope = measured.slope
    return (
        f"the processing lag's slope is {slope.pct:.2f} % of real time"
        f" ({slope.low_pct:.2f} to {slope.high_pct:.2f} % with {100 * confidence:.4g}% confidence)"
    )


def _level(measured: Lag) -> str:
    return f"median processing lag {measured.processing_lag_p50_ms:,.0f} ms"


def reason_of(
    kind: VerdictKind, measured: Lag, short: Shortfalls, threshold_pct: float, confidence: float
) -> str:
    told, level = _slope(measured, confidence), _level(measured)
    if kind is VerdictKind.KEPT_UP:
        return f"Kept up: {told}, below {threshold_pct:g} %; {level}"
    if kind is VerdictKind.FELL_BEHIND:
        return f"Fell behind: {told}, above {threshold_pct:g} %; {level}"
    if kind is VerdictKind.UNDECIDED:
        return f"Undecided: {told}, on both sides of {threshold_pct:g} %; {level}"
    name = "generator" if kind is VerdictKind.GENERATOR_BOUND else "broker"
    part = measured.generator if kind is VerdictKind.GENERATOR_BOUND else measured.broker
    missing = short.generator if kind is VerdictKind.GENERATOR_BOUND else short.broker
    facts = [f"it {missing}"] if missing else []
    if part.slope:
        facts.append(f"its part of the lag grows by {part.slope.pct:.2f} % of real time")
    whole_ms = measured.processing_lag_p50_ms
    facts.append(f"it holds {part.p50_ms:,.0f} ms of a median processing lag of {whole_ms:,.0f} ms")
    return f"The {name} was the bottleneck, not the engine: " + ", ".join(facts)


def warnings_of(
    series: LagSeries, step: ClockStep | None, end_ms: float, kind: VerdictKind, short: Shortfalls
) -> tuple[str, ...]:
    found = []
    if step and step.to_ms < end_ms:
        found.append(f"A clock was set back by {ago(step)}: only what was before it is judged")
    elif end_ms - series.end_ms > BIN_MS:
        found.append(
            f"The recording ends {(end_ms - series.end_ms) / 1000:.1f} s before the window"
        )
    if kind is VerdictKind.FELL_BEHIND and short.generator:
        found.append(f"It fell behind at less than was asked: the generator {short.generator}")
    if series.silent.any():
        ends_ms = [series.start_ms, *series.at_ms[~series.silent], series.end_ms]
        silence_s = float(np.max(np.diff(ends_ms))) / 1000
        found.append(f"The engine was silent (for {silence_s:.1f} s of the window at the longest)")
    return tuple(found)
