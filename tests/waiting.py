"""Wait for a condition instead of a fixed time."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], what: str, within_s: float = 60.0, every_s: float = 0.005
) -> None:
    """Return as soon as the condition holds; fail after `within_s`, naming what is missing."""
    give_up = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up, f"no {what} within {within_s:.0f} s"
        time.sleep(every_s)
