"""Wall clock and monotonic clock, also as an object that tests can replace."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Return epoch milliseconds."""
    return time.time_ns() // 1_000_000


def utc_now() -> str:
    """Return the current time in the format of `run.json`: ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock:
    """The system's clocks, passed in so that tests can replace them."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    def now_ms(self) -> int:
        """Return epoch milliseconds."""
        return now_ms()


SYSTEM_CLOCK = Clock()
