"""A known flaw of an engine: the calibration engine is given it, and the ruler has to find it."""

from dataclasses import dataclass

NO_PARTITION = -1
SELDOM_MS = 100  # a cycle that shows in the lag


@dataclass(frozen=True)
class Flaw:
    """How an engine falls short of one that counts at once.

    What it has counted it tells every `cycle_ms`. A pageview is counted no sooner than `delay_ms`
    after its `received_at`; at most `capacity_per_s` are counted (0: as many as come);
    `stalled_partition` (-1: none) is not counted from `stall_after_s` on, for `stall_for_s` (0: for
    good), both in seconds since the start.
    """

    delay_ms: int = 0
    capacity_per_s: int = 0
    stalled_partition: int = NO_PARTITION
    stall_after_s: float = 0.0
    stall_for_s: float = 0.0
    cycle_ms: int = 10

    def __str__(self) -> str:
        if self.stalled_partition != NO_PARTITION:
            return f"partition {self.stalled_partition} stalls"
        if self.capacity_per_s:
            return f"capacity of {self.capacity_per_s:,}/s"
        seldom = f", told every {self.cycle_ms:,} ms" if self.cycle_ms >= SELDOM_MS else ""
        return f"delay of {self.delay_ms:,} ms{seldom}"
