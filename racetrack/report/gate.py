"""Conditions of `--fail-if` on measured rows, such as `lag_p99_ms>2000`.

Absolute conditions read estimates and verdicts; relative ones read the ratios to a baseline.
"""

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from racetrack.analysis.claims import Estimate, Key, Pair, Samples, by_place, estimates, ratios
from racetrack.analysis.table import Load, Row
from racetrack.errors import UsageError
from racetrack.metrics import METRICS, Metric

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# Conditions without a number: name → verdict.
STATES = {"fell_behind": "fell behind", "undecided": "undecided"}
_COMPARISON = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?)(\d+(?:\.\d+)?)\s*(%?)\s*")
BEFORE = " (before)"


@dataclass(frozen=True)
class Condition:
    """A condition. `metric` is compared with `bound` by the operator `compares`. If `is_relative`,
    `bound` is a change in percent of the baseline. Without a metric, `verdict` is the verdict for
    which it holds."""

    text: str
    metric: Metric | None = None
    compares: str = ""
    bound: float = 0.0
    is_relative: bool = False
    verdict: str = ""


def parse(text: str) -> Condition:
    """Parse a condition.

    Raises:
        ValueError: the condition is invalid; the message contains the remedy.
    """
    if verdict := STATES.get(text.strip()):
        return Condition(text, verdict=verdict)
    if not (match := _COMPARISON.fullmatch(text)):
        raise ValueError(
            f"{text!r} is not a condition: write lag_p99_ms>2000, cpu_s_per_million>+10% or"
            " fell_behind, in quotes"
        )
    key, compares, sign, number, percent = match.groups()
    if not (metric := METRICS.get(key)):
        near = difflib.get_close_matches(key, [*METRICS, *STATES], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"there is no figure {key!r}.{hint} `definitions` in the output of --json has all"
        )
    if bool(sign) != bool(percent):
        raise ValueError(
            f"{text!r}: write a change with sign and percent, such as {key}{compares}+10%, and a"
            f" bound with neither, such as {key}{compares}2000"
        )
    return Condition(text, metric, compares, float(f"{sign}{number}"), is_relative=bool(percent))


def failures(
    conditions: Sequence[Condition], rows: Sequence[Row], baseline: Sequence[Row] = ()
) -> list[str]:
    """Return a text for each condition that holds for a variant at a load, with numbers. Rows that
    did not end `ok` do not count.

    A condition also holds if its figure is unknown or infinite, and one with a bound if it holds
    for a run that did not hold the load, since such runs must not pass a gate. With repeats on both
    sides, a change only counts if the interval of its ratio excludes 1, so that noise is not
    reported as a change.
    """
    texts = []
    for place, of_place in by_place(row for row in rows if row.outcome == "ok").items():
        alike = [row for row in baseline if row.place.together == place.together]
        for condition in conditions:
            reasons = list(_reasons(condition, of_place, alike))
            texts += [f"Fails --fail-if '{condition.text}': {reason}." for reason in reasons]
    return texts


def require_comparable(places: Iterable[tuple[str, str, str]], baseline: Sequence[Row]) -> None:
    """Check that the rows of a baseline have the workload, the runtime and the broker of all these
    places (`comparable`). Empty texts are unknown.

    Raises:
        UsageError: they do not.
    """
    there = {row.place.comparable for row in baseline}
    sides = [list(zip(*side, strict=True)) for side in (set(places), there) if side]
    for number, (kind, option, why) in enumerate(
        (
            ("workload", "--workload", "the engines did different work"),
            ("runtime", "RUNTIME", "other builds of the services took part"),
            ("broker", "KAFKA_BOOTSTRAP_SERVERS", "another broker delivered the input"),
        )
    ):
        known = [sorted(set(side[number]) - {""}) for side in sides]
        if len({value for values in known for value in values}) > 1:
            shown = " and ".join(" and ".join(values) or "unknown" for values in known)
            raise UsageError(
                f"Runs of more than one {kind} can't be compared: {shown}. A difference would not"
                f" be the engine's, since {why}. Name runs of one {kind}, or measure again with"
                f" the same {option}."
            )


def _reasons(condition: Condition, rows: Sequence[Row], baseline: Sequence[Row]) -> Iterator[str]:
    metric = condition.metric
    if not metric:
        for row in rows:
            if row.verdict == condition.verdict:
                yield f"{_where(row.variant, row.load)}: {row.verdict}"
        return
    samples = Samples.of(rows)
    known = estimates(samples)
    concerned = _concerned(metric, rows, known)
    if not concerned:
        yield f"no run has {metric.key}"
    changes = _changes(rows, baseline) if condition.is_relative else {}
    for variant, load in concerned:
        estimate = known.get((variant, metric.key, load))
        pair = changes.get((variant, metric.key, load))
        why = (
            _why_changed(condition, estimate, pair)
            if condition.is_relative
            else _why(condition, estimate, samples.missed(variant, load))
        )
        if why:
            yield f"{_where(variant, load)}: {metric.key} {why}"


def _concerned(
    metric: Metric, rows: Sequence[Row], known: Mapping[Key, Estimate]
) -> list[tuple[str, Load | None]]:
    """Return the variants and loads at which a figure is expected: capacity has no load, and there
    is no lag at saturation."""
    if metric.per == "window":
        return list(dict.fromkeys((row.variant, row.load.asked) for row in rows if row.load))
    return [(variant, load) for variant, key, load in known if key == metric.key]


def _why(condition: Condition, estimate: Estimate | None, missed: Sequence[Row]) -> str:
    """Return why a condition holds for an estimate, or for one of the windows that missed the load;
    empty if it does not."""
    if estimate is None or not math.isfinite(estimate.mean):
        return "is unknown or infinite"
    key = condition.metric.key if condition.metric else ""
    values = (estimate.mean, *(row.values[key] for row in missed if key in row.values))
    holding = (value for value in values if OPERATORS[condition.compares](value, condition.bound))
    first = next(holding, None)
    return "" if first is None else f"is {first:,.4g}"


def _why_changed(condition: Condition, estimate: Estimate | None, pair: Pair | None) -> str:
    if estimate is None or not math.isfinite(estimate.mean):
        return "is unknown or infinite"
    if pair is None:
        return "can't be compared: --against lacks it at this load, or a run did not hold the load"
    change_pct = 100 * (pair.ratio.ratio - 1)
    holds = OPERATORS[condition.compares](change_pct, condition.bound)
    return f"changed by {change_pct:+.1f} %" if holds and pair.ratio.excludes_1 is not False else ""


def _changes(rows: Sequence[Row], baseline: Sequence[Row]) -> dict[Key, Pair]:
    """Return the ratios of each variant to its counterpart in the baseline."""
    pairs: dict[Key, Pair] = {}
    for variant in dict.fromkeys(row.variant for row in rows):
        mine = [row for row in rows if row.variant == variant]
        if name := counterpart(mine[0], baseline):
            before = [
                replace(row, variant=name + BEFORE, place=mine[0].place)
                for row in baseline
                if row.variant == name and not row.is_trial
            ]
            pairs |= ratios([*mine, *before], name + BEFORE)
    return pairs


def counterpart(row: Row, baseline: Sequence[Row]) -> str | None:
    """Return the variant of a baseline to compare a row's variant with: that of the same name, else
    the only one of the same engine, else the only one at all."""
    for names in (
        {other.variant for other in baseline if other.variant == row.variant},
        {other.variant for other in baseline if other.engine == row.engine},
        {other.variant for other in baseline},
    ):
        if len(names) == 1:
            return names.pop()
    return None


def _where(variant: str, load: Load | None) -> str:
    return f"{variant} at {load}" if load else variant
