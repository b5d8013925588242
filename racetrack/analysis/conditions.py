"""Conditions of `--fail-if`, such as `lag_p99_ms>2000`, `cpu_s_per_million>+10%`, `fell_behind`."""

import difflib
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from racetrack.analysis.compare import Summary, ratio_of

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# Conditions without a number: name → verdict.
STATES = {"fell_behind": "fell behind", "undecided": "undecided"}
_COMPARISON = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?)(\d+(?:\.\d+)?)\s*(%?)\s*")


@dataclass(frozen=True)
class Condition:
    """A condition. `metric` is compared with `bound` by the operator `compares`. If `is_relative`,
    `bound` is a change in percent of the baseline. For a condition without a number, `metric` is
    its name in STATES and `compares` is empty."""

    text: str
    metric: str
    compares: str = ""
    bound: float = 0.0
    is_relative: bool = False


@dataclass(frozen=True)
class Group:
    """Repeats for which a condition is checked: their figures, their verdicts, and the names of all
    columns in their records, including those whose value is unknown."""

    figures: Mapping[str, Summary]
    verdicts: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()


def parse(text: str, metrics: Collection[str]) -> Condition:
    """Parse a condition. `metrics` are the names of figures that it may use.

    Raises:
        ValueError: the condition is invalid; the message contains the remedy.
    """
    name = text.strip()
    if name in STATES:
        return Condition(text, name)
    if not (found := _COMPARISON.fullmatch(text)):
        raise ValueError(
            f"{text!r} is not a condition: write lag_p99_ms>2000, cpu_s_per_million>+10% or"
            " fell_behind, in quotes"
        )
    metric, compares, sign, number, percent = found.groups()
    if metric not in metrics:
        near = difflib.get_close_matches(metric, [*metrics, *STATES], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no figure {metric!r}.{hint} docs/run-folder.md lists them")
    if bool(sign) != bool(percent):
        raise ValueError(
            f"{text!r}: write a change with sign and percent, such as {metric}{compares}+10%, and a"
            f" bound with neither, such as {metric}{compares}2000"
        )
    return Condition(text, metric, compares, float(f"{sign}{number}"), is_relative=bool(percent))


def why_it_holds(
    condition: Condition, group: Group, baseline: Mapping[str, Summary] | None
) -> str | None:
    """Return why a condition holds for a group of repeats, with numbers; None if it does not hold.

    A condition also holds if its figure is unknown or infinite, since such runs must not pass a
    gate. With repeats on both sides, a change only counts if the interval of the ratio excludes 1,
    so that noise is not reported as a change.
    """
    if not condition.compares:
        kind = STATES[condition.metric]
        return kind if kind in group.verdicts else None
    value = group.figures.get(condition.metric)
    if value is None:
        return f"{condition.metric} is unknown or infinite"
    if condition.is_relative:
        return _why_change_holds(condition, value, (baseline or {}).get(condition.metric))
    if not OPERATORS[condition.compares](value.mean, condition.bound):
        return None
    return f"{condition.metric} is {value.mean:,.4g}"


def _why_change_holds(
    condition: Condition, value: Summary, reference: Summary | None
) -> str | None:
    if reference is None:
        return f"--against has no {condition.metric} to compare with"
    found = ratio_of(value, reference)
    if found is None:
        return f"{condition.metric} is not above 0 on both sides"
    change_pct = 100 * (found.ratio - 1)
    if not OPERATORS[condition.compares](change_pct, condition.bound):
        return None
    is_shown = found.low is None or found.high is None or not found.low <= 1 <= found.high
    return f"{condition.metric} changed by {change_pct:+.1f} %" if is_shown else None
