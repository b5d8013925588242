"""The wall clock, as it is written down and compared between processes."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def utc_now() -> str:
    """ISO 8601 in UTC with milliseconds, as every time in `run.json` is written."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
