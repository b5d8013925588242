"""One clock for schedules and stamps: epoch nanoseconds that never jump, the same in every process
of the generator.
"""

from __future__ import annotations

import time

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Clock:
    """Epoch time from the monotonic clock, anchored once.

    Stepping the wall clock (NTP, a person) must not make pageviews due all at once or not at all.
    The monotonic clock is one for all processes of a machine, so handing on `offset_ns` is all it
    takes for workers to agree.
    """

    def __init__(self, offset_ns: int) -> None:
        self.offset_ns = offset_ns

    @classmethod
    def anchored_now(cls) -> Clock:
        """A clock that agrees with the wall clock at this moment."""
        return cls(time.time_ns() - time.monotonic_ns())

    def now_ns(self) -> int:
        """Epoch nanoseconds."""
        return time.monotonic_ns() + self.offset_ns
