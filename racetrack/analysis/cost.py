"""What an engine costs before it does anything, and what each pageview adds: a line through runs at
several rates. Pure functions.

At low rates most CPU is base load, and CPU-seconds per million divide it by few pageviews: such a
figure says nothing of the engine's work.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from racetrack.analysis.compare import CONFIDENCE

FEWEST_RUNS, FEWEST_RATES = 3, 2


@dataclass(frozen=True)
class Cost:
    """CPU = `base_pct` (percent of a core) + `per_million_s` (CPU-seconds per million pageviews)
    times the rate; each with half its 95 % interval (Student's t)."""

    base_pct: float
    base_half_pct: float
    per_million_s: float
    per_million_half_s: float
    runs: int
    from_per_s: float  # the lowest and the highest rate that was counted
    to_per_s: float


def fitted(processed_per_s: Sequence[float], cores: Sequence[float]) -> Cost | None:
    """The least-squares line through runs, given as pageviews counted per second and cores used;
    None where too few runs or rates make none."""
    if (
        len(cores) < FEWEST_RUNS
        or len({round(rate, -1) for rate in processed_per_s}) < FEWEST_RATES
    ):
        return None
    found = stats.linregress([rate / 1e6 for rate in processed_per_s], cores)
    t = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(cores) - 2))
    return Cost(
        base_pct=100 * float(found.intercept),
        base_half_pct=100 * t * float(found.intercept_stderr),
        per_million_s=float(found.slope),
        per_million_half_s=t * float(found.stderr),
        runs=len(cores),
        from_per_s=min(processed_per_s),
        to_per_s=max(processed_per_s),
    )
