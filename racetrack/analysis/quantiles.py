"""Two quantiles of values, as `run.json` has them."""

import numpy as np

from racetrack.analysis.lag import Floats
from racetrack.results.figures import Quantiles


def quantiles(values_ms: Floats) -> Quantiles | None:
    """The least of the values that so large a share of them is at most; None if there is none."""
    if not len(values_ms):
        return None
    p50_ms, p99_ms = np.quantile(values_ms, (0.5, 0.99), method="inverted_cdf")
    return Quantiles(p50_ms=float(p50_ms), p99_ms=float(p99_ms))
