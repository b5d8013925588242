"""Wall clock and monotonic clock, also as an object that tests can replace, and waiting."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

# An event that was due this much after the current time has a wrong time: clocks agree better.
AHEAD_MS = 100.0


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


def attempts(
    within_s: float, every_s: float, stop: threading.Event | None = None
) -> Iterator[float]:
    """Yield the seconds left: at once, and then after pauses of `every_s` until none are left or
    `stop` is set."""
    stop = stop or threading.Event()
    give_up_s = time.monotonic() + within_s
    yield within_s
    while (left_s := give_up_s - time.monotonic() - every_s) > 0 and not stop.wait(every_s):
        yield left_s


def wait_until(condition: Callable[[], object], within_s: float, every_s: float) -> bool:
    """Check a condition every `every_s` seconds. Return False if it was not met in time."""
    return any(condition() for _ in attempts(within_s, every_s))
