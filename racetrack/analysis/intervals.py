"""Means of repeated runs and ratios, with their intervals.

The interval of a mean is Student's t interval: each repeat is a fresh run, so repeats are
independent. `racetrack.analysis.claims` computes the intervals of ratios.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Summary:
    """Mean of a figure over `n` runs. `low` and `high` are the ends of its interval, None for a
    single run. `values` are the runs' values; empty if they are unknown, as in a result file.
    `freedom` are the degrees of freedom of Student's t in the interval, if not `n` - 1."""

    mean: float
    low: float | None
    high: float | None
    n: int
    values: tuple[float, ...] = ()
    freedom: float | None = None

    @property
    def half(self) -> float | None:
        """Half-width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class Ratio:
    """Ratio of two means. The interval from `low` to `high` is None if a side has only one run, or
    if the runs of each side are equal."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def excludes_1(self) -> bool | None:
        """True if the interval shows a difference; None if it is unknown."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1 <= self.high


def summary(values: Sequence[float]) -> Summary:
    """Return the arithmetic mean of the values of runs with its t interval (CONFIDENCE).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no mean of no values")
    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Summary(mean, None, None, n, tuple(values))
    half = float(np.std(values, ddof=1)) / math.sqrt(n) * t_quantile(n - 1)
    return Summary(mean, mean - half, mean + half, n, tuple(values))


def t_quantile(degrees: float) -> float:
    """Return the quantile of Student's t distribution that bounds a central interval
    (CONFIDENCE)."""
    from scipy import special

    return float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2))
