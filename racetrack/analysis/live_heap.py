"""Time until an engine's heap is full, from the growth of its live objects per event."""

import math
from dataclasses import dataclass

# Growth by less than GROWN of the heap is none. By less than RESOLVED, it may be what is in flight
# in a saturated engine.
GROWN, RESOLVED = 0.01, 0.05


@dataclass(frozen=True)
class LiveHeap:
    """Live objects on an engine's heaps, after a full collection, when it had counted `counted`
    events."""

    counted: int
    gib: float


def gib_per_event(early: LiveHeap, late: LiveHeap, size_gib: float) -> float:
    """Return the growth of the live objects per event between two readings; 0 if there is none on a
    heap of `size_gib`."""
    events, grown_gib = late.counted - early.counted, late.gib - early.gib
    return grown_gib / events if events > 0 and grown_gib >= GROWN * size_gib else 0.0


def full_after_min(early: LiveHeap, late: LiveHeap, size_gib: float, per_s: float) -> float | None:
    """Return the minutes from `early` until a heap of `size_gib` is full at a rate; infinite if the
    live objects did not grow, and None if nothing was counted between the two readings, or the
    growth is not resolved."""
    each_gib = gib_per_event(early, late, size_gib)
    is_resolved = not each_gib or late.gib - early.gib >= RESOLVED * size_gib
    if late.counted <= early.counted or per_s <= 0 or not is_resolved:
        return None
    return max(0.0, size_gib - early.gib) / each_gib / per_s / 60 if each_gib else math.inf


def events_until_full(minutes: float, capacity_per_s: float) -> float:
    """Return after how many events a heap is full that is full after these minutes at half of the
    capacity."""
    return capacity_per_s / 2 * 60 * minutes
