"""Time until an engine's heap is full, from the growth of its live objects per event."""

import math
from dataclasses import dataclass

# Growth below this share of the heap is not distinguished from none.
RESOLVED = 0.01


@dataclass(frozen=True)
class LiveHeap:
    """Live objects on an engine's heaps, after a full collection, when it had counted `counted`
    events."""

    counted: int
    gib: float


def full_after_min(early: LiveHeap, late: LiveHeap, size_gib: float, per_s: float) -> float | None:
    """Return the minutes from `early` until a heap of `size_gib` is full at a rate; infinite if the
    live objects did not grow, and None if nothing was counted between the two readings."""
    events, grown_gib = late.counted - early.counted, late.gib - early.gib
    if events <= 0 or per_s <= 0:
        return None
    if grown_gib < RESOLVED * size_gib:
        return math.inf
    return max(0.0, size_gib - early.gib) * events / grown_gib / per_s / 60
