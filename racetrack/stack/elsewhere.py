"""Contract of services that the user provides: they run elsewhere, at an address in the settings.

The stack does not start these services. It checks them before it starts anything, and at its end it
removes what the run created in them. `provided.py` finds the ones that a run uses. An engine that
the user can provide is declared as `ELSEWHERE` in the engine's `elsewhere.py`.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from racetrack.config import Settings
from racetrack.errors import SetupError
from racetrack.stack.contract import ServiceClock

# Name of the objects that this process's runs create in services that others also use. It contains
# time and process id, so that it is unique, and objects that remain can be attributed to a run.
RUN_NAME = f"racetrack_{time.strftime('%Y%m%d_%H%M%S', time.gmtime())}_{os.getpid()}"
NOT_ADVERTISED = (
    "Set it to this machine's address as seen from there, together with BIND_ADDRESS=0.0.0.0"
)
CLOCK_TRIES = 20
CLOCK_WITHIN_S = 3.0


@dataclass(frozen=True)
class Failure:
    """Refusal of an operation: the setting to look at, the server's answer, and the remedy. The
    remedy is a clause without a full stop."""

    setting: str
    answer: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.answer}. {self.remedy}."


@dataclass(frozen=True)
class Passed:
    """Result of a check that passed: the operations that succeeded, described for the user, and the
    service's clock if it was compared with this machine's."""

    operations: tuple[str, ...]
    clock: ServiceClock | None = None


class Elsewhere(Protocol):
    """A service that may run elsewhere."""

    service: str  # its name in the stack, such as `broker`
    title: str  # its name in messages
    setting: str  # setting that contains the address
    # True if the stack nevertheless starts a process for it: a relay through which all clients on
    # this machine reach it, or a program that uses it.
    starts_here: bool

    def address(self, settings: Settings) -> str:
        """Return the address without secrets; empty if the stack starts the service."""

    def check(self, settings: Settings) -> Passed:
        """Perform once, in at most ten seconds, the operations that a run needs; remove what they
        created.

        Raises:
            SetupError: the service can't be used; the message has a line for each reason.
            BusyError: it contains objects of another run that this run would remove.
        """

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Remove the objects that a run created: those named `run_name`, and those with a prefix
        from the settings. Return lines for the user on what was removed and what could not be."""


def refused(title: str, address: str, failures: Sequence[Failure]) -> SetupError:
    """Return the error of a check that failed for these reasons."""
    lines = "\n".join(f"  {each}" for each in failures)
    return SetupError(f"{title} at {address} can't be used for a run:\n{lines}")


def why_out_of_reach(title: str, host: str, settings: Settings) -> Failure | None:
    """Return why an engine at `host` can't reach this machine's broker and registry; None if it
    can."""
    # On Kubernetes, broker and registry are reached at the address of a node.
    if _is_loopback(host) or settings.runtime == "kubernetes":
        return None
    ours = settings.advertised_address
    if not _is_loopback(ours):
        return None
    answer = f"{title} would look for this machine's broker and registry at {ours}"
    return Failure("KAFKA_ADVERTISED_ADDRESS", answer, NOT_ADVERTISED)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a host name
        return host == "localhost"


@dataclass(frozen=True)
class ClockReading:
    """A reading of a service's clock. All times are epoch milliseconds; the service read its clock
    at an unknown time between request and answer."""

    sent_ms: float  # by this machine's clock, like `answered_ms`
    answered_ms: float
    # Bounds of the time that the service reported. They are equal, unless the service rounds its
    # time.
    earliest_ms: float
    latest_ms: float


class Stopwatch:
    """Stopwatch for a request and its answer. It reads the wall clock once, at the request; the
    time until the answer comes from the monotonic clock, so that a correction of the wall clock in
    between has no effect."""

    def __init__(self) -> None:
        # Read the clocks in this order: a pause between them makes the answer seem later, but the
        # bounds stay valid.
        self._began_s = time.monotonic()
        self._sent_ms = time.time() * 1000

    def reading(self, earliest_ms: float, latest_ms: float) -> ClockReading:
        """Return the reading from an answer that has just arrived, with a time in these bounds."""
        took_ms = (time.monotonic() - self._began_s) * 1000
        return ClockReading(self._sent_ms, self._sent_ms + took_ms, earliest_ms, latest_ms)


def clock_by(title: str, readings: Sequence[ClockReading]) -> ServiceClock:
    """Compute the offset of a service's clock from one or more readings.

    Each reading bounds the offset, since the clock was read after the request and before the
    answer. The true offset is within the bounds of all readings (K. Marzullo and S. Owicki,
    "Maintaining the time in a distributed system", 1983), so one fast request and one fast answer
    suffice, even of different readings.
    """
    low_ms = max(each.earliest_ms - each.answered_ms for each in readings)
    high_ms = min(each.latest_ms - each.sent_ms for each in readings)
    half_ms = (high_ms - low_ms) / 2
    if half_ms < 0:  # the clock was set, or is less precise than its readings
        fastest_ms = min(each.answered_ms - each.sent_ms for each in readings)
        half_ms = fastest_ms / 2 - half_ms
    return ServiceClock(title, (low_ms + high_ms) / 2, half_ms)


def measure_clock(title: str, read_ms: Callable[[], float]) -> ServiceClock:
    """Read the clock of a service several times; return its offset from ours, with bounds.
    `read_ms` returns the service's time in epoch milliseconds."""
    readings: list[ClockReading] = []
    give_up_s = time.monotonic() + CLOCK_WITHIN_S
    while len(readings) < CLOCK_TRIES and (not readings or time.monotonic() < give_up_s):
        watch = Stopwatch()
        at_ms = read_ms()
        readings.append(watch.reading(at_ms, at_ms))
    return clock_by(title, readings)
