"""The wall clock of all records."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Return epoch milliseconds."""
    return time.time_ns() // 1_000_000


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC with milliseconds, as in `run.json`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
