"""Yahoo's published latency beside the true one: how long after the end of each window of event
time it was last written. Pure functions.

A window is last written when the engine has counted the last event that was due in it. What was
late before that, and made up for by then, does not show: so the lag of the same time stands beside
it (docs/workloads.md).
"""

import numpy as np

from racetrack.analysis.age import age, quantiles_ms
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import Floats, recorded_until_ms, trusted
from racetrack.results.figures import WindowWrites


def window_writes(
    curves: Curves, start_ms: float, end_ms: float, length_ms: int
) -> WindowWrites | None:
    """Over the windows of event time that end between two times; None if there is none, or nothing
    was due in any."""
    curves = trusted(curves)
    first_ms = (np.floor(start_ms / length_ms) + 1) * length_ms
    ends_ms = np.arange(first_ms, end_ms + 1, length_ms)
    written_ms = np.full(len(ends_ms), -np.inf)
    for due, processed in zip(curves.due, curves.processed, strict=True):
        written_ms = np.maximum(written_ms, _last_written_ms(due, processed, ends_ms, length_ms))
    known = written_ms > -np.inf
    if not known.any():
        return None
    after_ms = (written_ms - ends_ms)[known]
    until_ms = min(float(written_ms[known].max()), recorded_until_ms(curves))
    (lag_max_ms,) = quantiles_ms(age(curves, start_ms, until_ms), (1.0,))
    return WindowWrites(
        length_ms=length_ms,
        windows=len(after_ms),
        after_end_p50_ms=float(np.quantile(after_ms, 0.5, method="inverted_cdf")),
        after_end_max_ms=float(after_ms.max()),
        lag_max_ms=lag_max_ms,
    )


def _last_written_ms(due: Curve, processed: Curve, ends_ms: Floats, length_ms: int) -> Floats:
    """When a partition's last event of each window was counted: -inf if it had none there, inf if
    that was never told."""
    by_end = np.floor(np.interp(ends_ms, due.at_ms, due.count))
    by_start = np.floor(np.interp(ends_ms - length_ms, due.at_ms, due.count))
    counts = np.maximum.accumulate(processed.count)
    rows = np.searchsorted(counts, by_end, "left")
    told_ms = np.append(processed.at_ms, np.inf)[rows]
    return np.where(by_end > by_start, told_ms, -np.inf)
