"""Descent to the highest rates at which the lag stays within bounds: which rate to try next.

It does no I/O. simulations/fluid.py measures its accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Fractions of the capacity at which rates may be tried: 0.95, 0.90, … 0.05. A step is an index into
# this tuple.
SHARES = tuple(round(0.95 - 0.05 * step, 2) for step in range(19))
# Steps that are tried until a rate is sustained: 0.95, 0.90, 0.80, 0.60, 0.20, 0.05 of the
# capacity.
DESCENT = (0, 1, 3, 7, 15, 18)
# A rate is sustainable within a bound if the QUANTILE of the lag does not exceed the bound.
QUANTILE = 0.99


@dataclass(frozen=True)
class Trial:
    """A rate to try, as a share of the capacity, and the bound for which it is tried. The trial may
    be stopped as soon as the lag has exceeded the bound for too long."""

    share: float
    bound_ms: float


@dataclass(frozen=True)
class TrialResult:
    """Result of a trial. `lag_p99_ms` is infinite if the trial was stopped. `is_offered` is false
    if the generator did not reach the rate."""

    lag_p99_ms: float
    is_offered: bool = True

    def is_within(self, bound_ms: float) -> bool:
        """Return whether the lag stayed within a bound."""
        return self.is_offered and self.lag_p99_ms <= bound_ms


@dataclass(frozen=True)
class Sustained:
    """The highest share of the capacity at which the lag stayed within a bound, and the lowest
    higher one at which it did not; None if there is no such share. `is_final` is false if a trial
    between them is missing, or the generator did not reach the higher one."""

    bound_ms: float
    share: float | None
    failed: float | None
    is_final: bool


class Descent:
    """Results of trials. Each result is used for all bounds. The largest bound is searched first;
    the search for a smaller bound then starts below the rate that was sustained within the larger
    bound."""

    def __init__(self, bounds_ms: Sequence[float]) -> None:
        self._bounds_ms = sorted(bounds_ms, reverse=True)
        self._results: dict[int, TrialResult] = {}

    def take(self, share: float, result: TrialResult) -> None:
        """Add the result of a trial at one of SHARES."""
        self._results[SHARES.index(share)] = result

    def wanted(self) -> Trial | None:
        """Return the next trial; None once the search is complete for every bound."""
        for bound_ms in self._bounds_ms:
            step = self._step(bound_ms)
            if step is not None:
                return Trial(SHARES[step], bound_ms)
        return None

    def sustained(self, bound_ms: float) -> Sustained:
        """Return what the trials so far show about a bound."""
        failed, sustained = self._bracket(bound_ms)
        was_offered = failed is None or self._results[failed].is_offered
        return Sustained(
            bound_ms=bound_ms,
            share=None if sustained is None else SHARES[sustained],
            failed=SHARES[failed] if failed is not None and was_offered else None,
            is_final=was_offered and self._step(bound_ms) is None,
        )

    def _step(self, bound_ms: float) -> int | None:
        failed, sustained = self._bracket(bound_ms)
        if sustained is None:
            return next((step for step in DESCENT if failed is None or step > failed), None)
        if failed is not None and sustained - failed > 1:
            return (failed + sustained) // 2
        return None

    def _bracket(self, bound_ms: float) -> tuple[int | None, int | None]:
        """Return the steps of two rates: the lowest rate that failed above the highest sustained
        rate, and the highest sustained rate."""
        within = [step for step, result in self._results.items() if result.is_within(bound_ms)]
        sustained = min(within, default=None)
        failed = [step for step, result in self._results.items() if not result.is_within(bound_ms)]
        above = [step for step in failed if sustained is None or step < sustained]
        return max(above, default=None), sustained
