"""Clock for schedules and timestamps: epoch nanoseconds that never jump, the same in every process
of the generator."""

from __future__ import annotations

import time

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Clock:
    """Epoch time from the monotonic clock, anchored once.

    A step of the wall clock (NTP) must not make all events due at once. All processes of a
    machine share the monotonic clock, so workers agree when they use the same `offset_ns`."""

    def __init__(self, offset_ns: int) -> None:
        self.offset_ns = offset_ns

    @classmethod
    def anchored_now(cls) -> Clock:
        """Return a clock that agrees with the wall clock now."""
        return cls(time.time_ns() - time.monotonic_ns())

    def now_ns(self) -> int:
        """Return epoch nanoseconds."""
        return time.monotonic_ns() + self.offset_ns
