"""Waiting for a condition instead of a fixed time."""

from collections.abc import Callable

from racetrack import clock


def wait_until(
    condition: Callable[[], object], what: str, within_s: float = 60.0, every_s: float = 0.005
) -> None:
    """Return as soon as the condition holds; fail after `within_s`, naming what is missing."""
    assert clock.wait_until(condition, within_s, every_s), f"no {what} within {within_s:.0f} s"
