"""Contract of services that the user provides: they run elsewhere, at an address in the settings.

The stack starts none of these. It checks them before it starts anything, and at its end removes
what the run created in them. `provided.py` finds those of a run. An engine declares its own as
`ELSEWHERE` in its `elsewhere.py`.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from racetrack.config import Settings
from racetrack.errors import SetupError
from racetrack.stack.contract import ServiceClock

# Name of what this process's runs create in a service that others use too. It contains time and
# process id, so that it is unique and what remains can be attributed to a run.
RUN_NAME = f"racetrack_{time.strftime('%Y%m%d_%H%M%S', time.gmtime())}_{os.getpid()}"
CLOCK_TRIES = 20
CLOCK_WITHIN_S = 3.0


@dataclass(frozen=True)
class Failure:
    """Refusal of an operation: the setting to look at, the server's answer, and the remedy, a
    clause."""

    setting: str
    answer: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.answer}. {self.remedy}."


@dataclass(frozen=True)
class Passed:
    """Operations that succeeded, in the user's words, and the service's clock if it matters."""

    operations: tuple[str, ...]
    clock: ServiceClock | None = None


class Elsewhere(Protocol):
    """A service that may run elsewhere."""

    service: str  # its name in the stack, such as `broker`
    title: str  # its name for people
    setting: str  # setting that contains the address
    # True if the stack starts a relay to it, by which all clients on this machine reach it.
    is_relayed: bool

    def address(self, settings: Settings) -> str:
        """Return the address without secrets; empty if the stack starts the service."""

    def check(self, settings: Settings) -> Passed:
        """Perform once, in at most ten seconds, the operations that a run needs; leave nothing.

        Raises:
            SetupError: the service can't be used; the message has a line for each reason.
            BusyError: it contains objects of another run that this run would remove.
        """

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Remove what a run created: what has the name `run_name`, or begins with a prefix in the
        settings. Return lines for the user on what was removed and what could not be."""


def refused(title: str, address: str, failures: Sequence[Failure]) -> SetupError:
    """Return the error of a check that failed for these reasons."""
    lines = "\n".join(f"  {each}" for each in failures)
    return SetupError(f"{title} at {address} can't be used for a run:\n{lines}")


def measure_clock(title: str, read_ms: Callable[[], float], rounding_ms: float) -> ServiceClock:
    """Return the clock of a service, by the fastest of some readings.

    `read_ms` asks the service for its time in epoch milliseconds, which may be up to `rounding_ms`
    before or after the exact time. The service read its clock at an unknown time between question
    and answer, so the uncertainty is half of the round trip, plus the rounding.
    """
    best: ServiceClock | None = None
    give_up_s = time.monotonic() + CLOCK_WITHIN_S
    for _ in range(CLOCK_TRIES):
        began_ms, began_s = time.time() * 1000, time.monotonic()
        at_ms = read_ms()
        half_trip_ms = (time.monotonic() - began_s) * 1000 / 2
        offset_ms = at_ms - (began_ms + half_trip_ms)
        tried = ServiceClock(title, offset_ms, half_trip_ms + rounding_ms)
        if best is None or tried.uncertainty_ms < best.uncertainty_ms:
            best = tried
        if time.monotonic() > give_up_s:
            break
    assert best is not None  # noqa: S101  # there is at least one reading
    return best
